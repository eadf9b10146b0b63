//! File-system reality: every way in which people and tools change files, in real directories.

use pilotfish::watch::{Changes, Polling, Rescan, Roots, SettleOptions, WatchOptions, watch};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;

/// A watched directory and what has been heard of it.
struct Watched {
    receiver: Receiver<Changes>,
    rescan: Rescan,
    files: BTreeMap<String, String>,
    mesh: Option<String>,
    secrets: BTreeMap<String, Vec<String>>,
    problems: Vec<String>,
    complete: bool,
    messages: usize,
    // Dropped last.
    _dir: TempDir,
    root: PathBuf,
}

fn temp() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn roots(config: &Path) -> Roots {
    Roots { config: vec![config.to_path_buf()], ..Roots::default() }
}

impl Watched {
    /// Watches by events alone: the poll would hide events that were missed.
    fn start(dir: TempDir, roots: Roots) -> Watched {
        Watched::with(dir, roots, |options| options)
    }

    fn with(
        dir: TempDir,
        roots: Roots,
        change: impl FnOnce(WatchOptions) -> WatchOptions,
    ) -> Watched {
        let day = Duration::from_secs(86_400);
        let options = change(WatchOptions {
            slow_poll: day,
            fast_poll: day,
            settle: SettleOptions {
                quiet: Duration::from_millis(10),
                max: Duration::from_millis(100),
            },
            ..WatchOptions::new(roots, Polling::Auto)
        });
        let (receiver, rescan) = watch(options);
        Watched {
            receiver,
            rescan,
            files: BTreeMap::new(),
            mesh: None,
            secrets: BTreeMap::new(),
            problems: Vec::new(),
            complete: false,
            messages: 0,
            root: dir.path().to_path_buf(),
            _dir: dir,
        }
    }

    async fn hear(&mut self) {
        let changes = timeout(Duration::from_secs(20), self.receiver.recv())
            .await
            .expect("nothing was heard for 20 seconds")
            .expect("the watcher runs");
        self.messages += 1;
        let short = |label: &str| {
            let root = format!("{}/", self.root.display());
            label.strip_prefix(&root).unwrap_or(label).to_owned()
        };
        for source in changes.changed {
            self.files.insert(short(&source.path), source.text.to_string());
        }
        for path in changes.removed {
            assert!(self.files.remove(&short(&path)).is_some(), "{path} was not known");
        }
        if let Some(mesh) = changes.mesh {
            self.mesh = mesh.map(|source| source.text.to_string());
        }
        for secret in changes.secrets_changed {
            let parts = secret.parts.keys().cloned().collect();
            self.secrets.insert(secret.name.to_string(), parts);
        }
        for name in changes.secrets_removed {
            self.secrets.remove(&*name);
        }
        self.complete = changes.complete;
        self.problems = changes.problems.iter().map(|d| d.message.clone()).collect();
    }

    /// Waits until exactly these files are known.
    async fn until(&mut self, expected: &[(&str, &str)]) {
        let expected: BTreeMap<String, String> =
            expected.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        while self.messages == 0 || self.files != expected {
            self.hear().await;
        }
    }
}

#[tokio::test]
async fn an_empty_directory_is_heard_of_too() {
    let dir = temp();
    let roots = roots(dir.path());
    Watched::start(dir, roots).until(&[]).await;
}

#[tokio::test]
async fn files_are_found_by_extension_and_below_directories() {
    let dir = temp();
    fs::create_dir_all(dir.path().join("a/b")).unwrap();
    for name in
        ["x.yaml", "a/y.yml", "a/b/z.json", "README.md", ".hidden.yaml", "#x.yaml", "a/x.yaml~"]
    {
        fs::write(dir.path().join(name), name).unwrap();
    }
    fs::create_dir(dir.path().join(".git")).unwrap();
    fs::write(dir.path().join(".git/config.yaml"), "no").unwrap();
    let roots = roots(dir.path());
    let expected = [("a/b/z.json", "a/b/z.json"), ("a/y.yml", "a/y.yml"), ("x.yaml", "x.yaml")];
    Watched::start(dir, roots).until(&expected).await;
}

#[tokio::test]
async fn writing_in_place_renaming_over_and_deleting_are_heard() {
    let dir = temp();
    let file = dir.path().join("a.yaml");
    let temporary = dir.path().join("a.yaml.tmp");
    fs::write(&file, "1").unwrap();
    let roots = roots(dir.path());
    let mut watched = Watched::start(dir, roots);
    watched.until(&[("a.yaml", "1")]).await;
    fs::write(&file, "2").unwrap();
    watched.until(&[("a.yaml", "2")]).await;
    for content in ["3", "4"] {
        // As `sed -i` and most editors save; twice, because the first replaces the inode.
        fs::write(&temporary, content).unwrap();
        fs::rename(&temporary, &file).unwrap();
        watched.until(&[("a.yaml", content)]).await;
    }
    fs::remove_file(&file).unwrap();
    watched.until(&[]).await;
    fs::write(&file, "5").unwrap();
    watched.until(&[("a.yaml", "5")]).await;
}

#[tokio::test]
async fn a_touch_without_a_change_is_not_heard() {
    let dir = temp();
    let file = dir.path().join("a.yaml");
    let other = dir.path().join("b.yaml");
    fs::write(&file, "1").unwrap();
    let roots = roots(dir.path());
    let mut watched = Watched::start(dir, roots);
    watched.until(&[("a.yaml", "1")]).await;
    fs::write(&file, "1").unwrap();
    fs::write(&other, "barrier").unwrap();
    watched.hear().await;
    assert_eq!(watched.files.len(), 2, "the first message after the touch is the barrier's");
}

#[tokio::test]
async fn new_directories_and_moved_ones_are_heard() {
    let dir = temp();
    let elsewhere = temp();
    fs::create_dir(elsewhere.path().join("m")).unwrap();
    fs::write(elsewhere.path().join("m/x.yaml"), "x").unwrap();
    let roots = roots(dir.path());
    let mut watched = Watched::start(dir, roots);
    watched.until(&[]).await;
    let deep = watched.root.join("a/b/c");
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("d.yaml"), "d").unwrap();
    watched.until(&[("a/b/c/d.yaml", "d")]).await;
    fs::rename(elsewhere.path().join("m"), watched.root.join("m")).unwrap();
    watched.until(&[("a/b/c/d.yaml", "d"), ("m/x.yaml", "x")]).await;
    fs::write(watched.root.join("m/x.yaml"), "y").unwrap();
    watched.until(&[("a/b/c/d.yaml", "d"), ("m/x.yaml", "y")]).await;
    fs::rename(watched.root.join("m"), watched.root.join("n")).unwrap();
    watched.until(&[("a/b/c/d.yaml", "d"), ("n/x.yaml", "y")]).await;
    fs::remove_dir_all(watched.root.join("a")).unwrap();
    watched.until(&[("n/x.yaml", "y")]).await;
}

#[tokio::test]
async fn a_kubernetes_mount_is_followed_through_its_swap() {
    let dir = temp();
    let root = dir.path().to_path_buf();
    fs::create_dir(root.join("..v1")).unwrap();
    fs::write(root.join("..v1/a.yaml"), "1").unwrap();
    symlink("..v1", root.join("..data")).unwrap();
    symlink("..data/a.yaml", root.join("a.yaml")).unwrap();
    let roots = roots(&root);
    let mut watched = Watched::start(dir, roots);
    watched.until(&[("a.yaml", "1")]).await;
    for version in 2..4 {
        let target = format!("..v{version}");
        fs::create_dir(root.join(&target)).unwrap();
        fs::write(root.join(&target).join("a.yaml"), version.to_string()).unwrap();
        symlink(&target, root.join("..tmp")).unwrap();
        fs::rename(root.join("..tmp"), root.join("..data")).unwrap();
        watched.until(&[("a.yaml", &version.to_string())]).await;
    }
}

#[tokio::test]
async fn a_root_that_is_a_symlink_is_followed_when_it_is_retargeted() {
    let dir = temp();
    let base = dir.path().to_path_buf();
    for version in ["v1", "v2"] {
        fs::create_dir(base.join(version)).unwrap();
        fs::write(base.join(version).join("a.yaml"), version).unwrap();
    }
    symlink("v1", base.join("current")).unwrap();
    let roots = roots(&base.join("current"));
    let mut watched = Watched::start(dir, roots);
    watched.until(&[("current/a.yaml", "v1")]).await;
    symlink("v2", base.join("next")).unwrap();
    fs::rename(base.join("next"), base.join("current")).unwrap();
    watched.until(&[("current/a.yaml", "v2")]).await;
    fs::write(base.join("v2/a.yaml"), "edited").unwrap();
    watched.until(&[("current/a.yaml", "edited")]).await;
}

#[tokio::test]
async fn a_linked_directory_is_followed_when_it_is_retargeted_and_edited() {
    let dir = temp();
    let outside = temp();
    let root = dir.path().to_path_buf();
    for version in ["v1", "v2"] {
        fs::create_dir(outside.path().join(version)).unwrap();
        fs::write(outside.path().join(version).join("a.yaml"), version).unwrap();
    }
    symlink(outside.path().join("v1"), root.join("sub")).unwrap();
    let roots = roots(&root);
    let mut watched = Watched::start(dir, roots);
    watched.until(&[("sub/a.yaml", "v1")]).await;
    symlink(outside.path().join("v2"), root.join("new")).unwrap();
    fs::rename(root.join("new"), root.join("sub")).unwrap();
    watched.until(&[("sub/a.yaml", "v2")]).await;
    fs::write(outside.path().join("v2/a.yaml"), "edited").unwrap();
    watched.until(&[("sub/a.yaml", "edited")]).await;
}

#[tokio::test]
async fn a_linked_file_is_followed_to_its_own_directory() {
    let dir = temp();
    let outside = temp();
    let target = outside.path().join("real.yaml");
    fs::write(&target, "1").unwrap();
    symlink(&target, dir.path().join("a.yaml")).unwrap();
    let roots = roots(dir.path());
    let mut watched = Watched::start(dir, roots);
    watched.until(&[("a.yaml", "1")]).await;
    let temporary = outside.path().join("tmp");
    fs::write(&temporary, "2").unwrap();
    fs::rename(&temporary, &target).unwrap();
    watched.until(&[("a.yaml", "2")]).await;
}

#[tokio::test]
async fn links_in_a_circle_end() {
    let dir = temp();
    fs::create_dir(dir.path().join("a")).unwrap();
    fs::write(dir.path().join("a/x.yaml"), "x").unwrap();
    symlink("..", dir.path().join("a/up")).unwrap();
    symlink("loop", dir.path().join("loop")).unwrap();
    let roots = roots(dir.path());
    Watched::start(dir, roots).until(&[("a/x.yaml", "x")]).await;
}

#[tokio::test]
async fn a_root_that_goes_away_keeps_its_files_and_is_followed_when_it_comes_back() {
    let dir = temp();
    let base = dir.path().to_path_buf();
    let root = base.join("config");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a.yaml"), "1").unwrap();
    let roots = roots(&root);
    let mut watched = Watched::start(dir, roots);
    watched.until(&[("config/a.yaml", "1")]).await;
    fs::rename(&root, base.join("away")).unwrap();
    while watched.problems.is_empty() {
        watched.hear().await;
    }
    assert_eq!(watched.files.len(), 1, "the last good files stay");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a.yaml"), "2").unwrap();
    watched.until(&[("config/a.yaml", "2")]).await;
    fs::write(root.join("a.yaml"), "3").unwrap();
    watched.until(&[("config/a.yaml", "3")]).await;
}

#[tokio::test]
async fn a_directory_that_is_replaced_under_its_name_is_followed() {
    let dir = temp();
    let root = dir.path().join("config");
    let sub = root.join("sub");
    let build = |version: &str| {
        fs::create_dir_all(&sub).unwrap();
        fs::write(root.join("a.yaml"), version).unwrap();
        fs::write(sub.join("b.yaml"), version).unwrap();
    };
    build("1");
    let roots = roots(&root);
    let mut watched = Watched::start(dir, roots);
    watched.until(&[("config/a.yaml", "1"), ("config/sub/b.yaml", "1")]).await;
    for version in ["2", "3"] {
        // At once, so that the file system gives out the same inode numbers again.
        fs::remove_dir_all(&root).unwrap();
        build(version);
        watched.until(&[("config/a.yaml", version), ("config/sub/b.yaml", version)]).await;
    }
    fs::write(root.join("a.yaml"), "4").unwrap();
    watched.until(&[("config/a.yaml", "4"), ("config/sub/b.yaml", "3")]).await;
    fs::write(sub.join("b.yaml"), "4").unwrap();
    watched.until(&[("config/a.yaml", "4"), ("config/sub/b.yaml", "4")]).await;
}

#[tokio::test]
async fn a_root_that_is_yet_to_come_is_heard_when_it_comes() {
    let dir = temp();
    let root = dir.path().join("not/yet");
    let roots = roots(&root);
    let mut watched = Watched::start(dir, roots);
    watched.hear().await;
    assert_eq!(watched.problems.len(), 1, "{:?}", watched.problems);
    assert!(!watched.complete);
    fs::create_dir_all(&root).unwrap();
    fs::write(root.join("a.yaml"), "1").unwrap();
    watched.until(&[("not/yet/a.yaml", "1")]).await;
    assert!(watched.problems.is_empty() && watched.complete);
}

#[tokio::test]
async fn a_file_that_is_emptied_for_a_moment_keeps_its_content() {
    let dir = temp();
    let file = dir.path().join("a.yaml");
    fs::write(&file, "old").unwrap();
    let roots = roots(dir.path());
    let mut watched = Watched::start(dir, roots);
    watched.until(&[("a.yaml", "old")]).await;
    fs::write(&file, "").unwrap();
    fs::write(watched.root.join("b.yaml"), "barrier").unwrap();
    watched.hear().await;
    assert_eq!(watched.files["a.yaml"], "old");
    fs::write(&file, "new").unwrap();
    watched.until(&[("a.yaml", "new"), ("b.yaml", "barrier")]).await;
    // One that stays empty is believed after a while.
    fs::write(&file, "").unwrap();
    watched.until(&[("a.yaml", ""), ("b.yaml", "barrier")]).await;
}

#[tokio::test]
async fn a_file_that_is_not_text_is_a_problem_and_keeps_its_content() {
    let dir = temp();
    let file = dir.path().join("a.yaml");
    fs::write(&file, "old").unwrap();
    let roots = roots(dir.path());
    let mut watched = Watched::start(dir, roots);
    watched.until(&[("a.yaml", "old")]).await;
    fs::write(&file, [0xff, 0xfe, 0x00]).unwrap();
    while watched.problems.is_empty() {
        watched.hear().await;
    }
    assert!(watched.problems[0].contains("not UTF-8"), "{:?}", watched.problems);
    assert_eq!(watched.files["a.yaml"], "old");
}

#[tokio::test]
async fn strangers_beside_the_root_do_not_cause_looks() {
    let dir = temp();
    let root = dir.path().join("config");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a.yaml"), "1").unwrap();
    let roots = roots(&root);
    let mut watched = Watched::start(dir, roots);
    watched.until(&[("config/a.yaml", "1")]).await;
    for i in 0..100 {
        fs::write(watched.root.join(format!("stranger-{i}.yaml")), "x").unwrap();
    }
    fs::write(root.join("a.yaml"), "2").unwrap();
    watched.hear().await;
    assert_eq!(watched.files["config/a.yaml"], "2");
}

#[tokio::test]
async fn the_mesh_file_of_the_first_directory_is_not_a_document() {
    let dir = temp();
    fs::write(dir.path().join("mesh.yaml"), "connectTimeout: 1s").unwrap();
    fs::write(dir.path().join("a.yaml"), "1").unwrap();
    let roots = roots(dir.path());
    let mut watched = Watched::start(dir, roots);
    watched.until(&[("a.yaml", "1")]).await;
    assert_eq!(watched.mesh.as_deref(), Some("connectTimeout: 1s"));
    fs::write(watched.root.join("mesh.yaml"), "connectTimeout: 2s").unwrap();
    while watched.mesh.as_deref() != Some("connectTimeout: 2s") {
        watched.hear().await;
    }
    fs::remove_file(watched.root.join("mesh.yaml")).unwrap();
    while watched.mesh.is_some() {
        watched.hear().await;
    }
}

#[tokio::test]
async fn a_mesh_file_that_is_named_is_not_a_document_under_another_name() {
    let dir = temp();
    fs::write(dir.path().join("settings.yaml"), "connectTimeout: 1s").unwrap();
    fs::write(dir.path().join("a.yaml"), "1").unwrap();
    let mesh = dir.path().join(".").join("settings.yaml");
    let roots = Roots { mesh: Some(mesh), ..roots(dir.path()) };
    let mut watched = Watched::start(dir, roots);
    watched.until(&[("a.yaml", "1")]).await;
    assert_eq!(watched.mesh.as_deref(), Some("connectTimeout: 1s"));
}

#[tokio::test]
async fn secret_directories_are_heard_by_name() {
    let dir = temp();
    let secrets = dir.path().join("secrets");
    let config = dir.path().join("config");
    fs::create_dir_all(secrets.join("web")).unwrap();
    fs::create_dir(&config).unwrap();
    fs::write(secrets.join("web/tls.crt"), "c").unwrap();
    let roots = Roots { secrets: Some(secrets.clone()), ..roots(&config) };
    let mut watched = Watched::start(dir, roots);
    watched.until(&[]).await;
    assert_eq!(watched.secrets["web"], ["tls.crt"]);
    fs::write(secrets.join("web/tls.key"), "k").unwrap();
    while watched.secrets["web"].len() != 2 {
        watched.hear().await;
    }
    fs::remove_dir_all(secrets.join("web")).unwrap();
    while !watched.secrets.is_empty() {
        watched.hear().await;
    }
}

#[tokio::test]
async fn without_events_the_poll_finds_changes() {
    let dir = temp();
    let file = dir.path().join("a.yaml");
    fs::write(&file, "1").unwrap();
    let roots = roots(dir.path());
    let mut watched = Watched::with(dir, roots, |options| WatchOptions {
        polling: Polling::Only,
        fast_poll: Duration::from_millis(20),
        ..options
    });
    watched.until(&[("a.yaml", "1")]).await;
    fs::write(&file, "2").unwrap();
    watched.until(&[("a.yaml", "2")]).await;
}

#[tokio::test]
async fn a_rescan_looks_without_an_event() {
    let dir = temp();
    let file = dir.path().join("a.yaml");
    fs::write(&file, "1").unwrap();
    let roots = roots(dir.path());
    let mut watched =
        Watched::with(dir, roots, |options| WatchOptions { polling: Polling::Only, ..options });
    watched.until(&[("a.yaml", "1")]).await;
    fs::write(&file, "2").unwrap();
    watched.rescan.now();
    watched.until(&[("a.yaml", "2")]).await;
}
