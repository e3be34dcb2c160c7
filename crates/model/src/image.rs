//! Images: the programs that boxes run.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::name::UploadName;
use crate::text::as_text;

/// Maximum bytes of an image that a user gives: a daemon stores it, and every fabric that uses it loads it.
pub const MAX_IMAGE_BYTES: usize = (64 << 20) - (64 << 10);

/// What a digest begins with: the name of the hash function.
const PREFIX: &str = "sha256:";

/// The pattern of a digest.
const PATTERN: &str = "^sha256:[0-9a-f]{64}$";

/// The SHA-256 digest of an image, which tells it from all others: `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageDigest(pub [u8; 32]);

/// Text that is no digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageDigestError;

impl fmt::Display for ImageDigestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the digest of an image is {PREFIX} and 64 digits of 0-9 a-f")
    }
}

impl std::error::Error for ImageDigestError {}

impl FromStr for ImageDigest {
    type Err = ImageDigestError;

    fn from_str(text: &str) -> Result<Self, ImageDigestError> {
        let digits = text.strip_prefix(PREFIX).filter(|digits| digits.len() == 64).ok_or(ImageDigestError)?;
        let mut digest = [0; 32];
        for (byte, pair) in digest.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
            *byte = pair.iter().try_fold(0, |sum, digit| match digit {
                b'0'..=b'9' => Ok(sum << 4 | (digit - b'0')),
                b'a'..=b'f' => Ok(sum << 4 | (digit - b'a' + 10)),
                _ => Err(ImageDigestError),
            })?;
        }
        Ok(Self(digest))
    }
}

impl fmt::Display for ImageDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

as_text!(ImageDigest, "ImageDigest", PATTERN, "The SHA-256 digest of an image.");

/// An image that a user gives, in place of the built-in one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImageSource {
    /// An image that the daemon has: one that a box of the same owner runs, or of a stack that awaits confirmation.
    Digest(ImageDigest),
    /// An image that was uploaded before. The upload stays until a request that installs it succeeds, or until it expires.
    Upload(UploadName),
}

impl ImageSource {
    /// The digest, if the daemon has the image.
    pub fn digest(&self) -> Option<&ImageDigest> {
        match self {
            Self::Digest(digest) => Some(digest),
            Self::Upload(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_read_as_it_is_written() {
        let mut bytes = [0; 32];
        (0..).zip(&mut bytes).for_each(|(number, byte)| *byte = 8 * number + 3);
        let text = ImageDigest(bytes).to_string();
        assert_eq!((text.parse(), text.len()), (Ok(ImageDigest(bytes)), 71));
        let zeros = "0".repeat(64);
        for bad in [
            String::new(),
            zeros.clone(),
            format!("sha1:{zeros}"),
            format!("sha256:{zeros}0"),
            format!("sha256:{}", &zeros[1..]),
            format!("sha256:{}G", &zeros[1..]),
            format!("sha256:{}A", &zeros[1..]),
            format!("sha256:{}ä", &zeros[2..]),
        ] {
            assert_eq!(bad.parse::<ImageDigest>(), Err(ImageDigestError), "{bad}");
        }
    }
}
