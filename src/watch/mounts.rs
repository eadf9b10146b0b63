//! Which file systems send no events for changes made elsewhere.

use std::fs;
use std::path::Path;

/// Remote and layered file systems, by the names of `/proc/self/mountinfo`: changes made on the
/// other side (or in a lower layer) send no events.
const WITHOUT_EVENTS: [&str; 8] =
    ["nfs", "nfs4", "9p", "virtiofs", "overlay", "cifs", "smb3", "fuse"];

/// Whether events of this path can be relied on. Where the system does not tell, they are.
pub fn sends_events(path: &Path) -> bool {
    let Ok(mounts) = fs::read_to_string("/proc/self/mountinfo") else { return true };
    let Ok(real) = fs::canonicalize(path) else { return true };
    file_system(&mounts, &real).is_none_or(|kind| {
        let base = kind.split('.').next().unwrap_or(kind);
        !WITHOUT_EVENTS.contains(&base)
    })
}

/// The type of the file system that holds a path. The longest mount point above the path decides;
/// of several at one place the last, because it covers the others.
fn file_system<'m>(mounts: &'m str, path: &Path) -> Option<&'m str> {
    let mounted = mounts.lines().filter_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let point = before.split(' ').nth(4)?.replace("\\040", " ");
        let kind = after.split(' ').next()?;
        path.starts_with(&point).then_some((point.len(), kind))
    });
    mounted.max_by_key(|(length, _)| *length).map(|(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
30 22 0:30 / /config rw - overlay overlay rw
31 22 0:31 / /config/my\\040nfs rw - nfs4 server:/x rw
32 22 0:32 / /sshfs rw - fuse.sshfs host:/x rw
";

    #[test]
    fn the_longest_mount_point_decides() {
        let kind = |path: &str| file_system(MOUNTS, Path::new(path));
        assert_eq!(kind("/etc/x"), Some("ext4"));
        assert_eq!(kind("/config/a.yaml"), Some("overlay"));
        assert_eq!(kind("/config/my nfs/a.yaml"), Some("nfs4"));
        assert_eq!(kind("/sshfs/a"), Some("fuse.sshfs"));
        assert_eq!(kind("/configuration"), Some("ext4"));
    }
}
