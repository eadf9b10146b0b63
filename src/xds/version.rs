//! Versions as hashes of content: of one resource, and of a set of them.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, Sub};
use std::str::FromStr;
use xxhash_rust::xxh3::Xxh3;

/// A version: a hash of content. Equal content gives equal versions on any machine and in any
/// run; it is never a counter, a clock or a random number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(u128);

impl Version {
    /// The version of these bytes.
    pub fn of(bytes: &[u8]) -> Version {
        Version(xxhash_rust::xxh3::xxh3_128(bytes))
    }

    /// The version of a list of texts, in the order given.
    pub fn of_list<'a>(texts: impl IntoIterator<Item = &'a str>) -> Version {
        let mut hasher = Xxh3::new();
        for text in texts {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        Version(hasher.digest128())
    }

    /// The version of a set of named versions, in any order.
    pub fn of_all<'a>(parts: impl IntoIterator<Item = (&'a str, Version)>) -> Version {
        parts.into_iter().map(|(name, version)| Digest::of(name, version)).sum::<Digest>().into()
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The text was not made by [`Version`]'s `Display`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAVersion;

impl FromStr for Version {
    type Err = NotAVersion;

    /// Reads back what `Display` wrote, as clients return it when they reconnect.
    fn from_str(text: &str) -> Result<Version, NotAVersion> {
        let lower_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if text.len() != 32 || !text.bytes().all(lower_hex) {
            return Err(NotAVersion);
        }
        u128::from_str_radix(text, 16).map(Version).map_err(|_| NotAVersion)
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Version({self})")
    }
}

/// What a named version adds to the version of a set that it is in. It is a sum, so a set that
/// changes a little knows its version without another look at all of it, and so does who wants
/// all of a set but a few.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Digest(u128);

impl Digest {
    /// What this name with this version adds.
    pub(crate) fn of(name: &str, version: Version) -> Digest {
        let mut hasher = Xxh3::new();
        hasher.update(&(name.len() as u64).to_le_bytes());
        hasher.update(name.as_bytes());
        hasher.update(&version.0.to_le_bytes());
        Digest(hasher.digest128())
    }

    /// Whether it is one of about so many, which ones being as good as random.
    pub(crate) fn is_one_of(self, many: u64) -> bool {
        self.0.is_multiple_of(u128::from(many))
    }
}

impl Add for Digest {
    type Output = Digest;

    fn add(self, other: Digest) -> Digest {
        Digest(self.0.wrapping_add(other.0))
    }
}

impl Sub for Digest {
    type Output = Digest;

    fn sub(self, other: Digest) -> Digest {
        Digest(self.0.wrapping_sub(other.0))
    }
}

impl Sum for Digest {
    fn sum<I: Iterator<Item = Digest>>(parts: I) -> Digest {
        parts.fold(Digest::default(), Add::add)
    }
}

impl From<Digest> for Version {
    fn from(digest: Digest) -> Version {
        Version(digest.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_reads_back_what_it_shows() {
        let version = Version::of(b"x");
        assert_eq!(version.to_string().parse(), Ok(version));
        for other in ["", "1", "+0000000000000000000000000000001", &"A".repeat(32)] {
            assert_eq!(other.parse::<Version>(), Err(NotAVersion), "{other}");
        }
    }

    #[test]
    fn a_version_depends_on_names_and_their_boundaries() {
        let v = Version::of(b"x");
        assert_ne!(Version::of_all([("ab", v), ("c", v)]), Version::of_all([("a", v), ("bc", v)]));
    }

    #[test]
    fn a_version_of_a_set_depends_on_which_name_has_which_content() {
        let (v, w) = (Version::of(b"v"), Version::of(b"w"));
        assert_ne!(Version::of_all([("a", v), ("b", w)]), Version::of_all([("a", w), ("b", v)]));
        assert_eq!(Version::of_all([("a", v), ("b", w)]), Version::of_all([("b", w), ("a", v)]));
    }

    #[test]
    fn what_was_added_can_be_taken_away_again() {
        let (a, b) = (Digest::of("a", Version::of(b"1")), Digest::of("b", Version::of(b"2")));
        assert_eq!(a + b - a, b);
    }
}
