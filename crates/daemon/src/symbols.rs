//! Names of the functions in the box image, for crash reports.
//!
//! The image has no symbols: every host would load them. The build writes them to a file beside the program instead.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

/// A file with the symbols of a box image. The first line is the image's fingerprint; each other line is the address and
/// the size of a function, in hexadecimal, and its name.
#[derive(Clone, Debug)]
pub struct SymbolFile {
    /// The path of the file. If there is none, crash reports name no functions.
    pub path: PathBuf,
    /// The fingerprint of the image that boxes run. A file of another image is ignored.
    pub fingerprint: &'static str,
}

impl SymbolFile {
    /// The function that contains an address, with the offset from its start. `None` if no function does, or the file
    /// is missing or of another image.
    pub(crate) fn function(&self, address: u64) -> Option<String> {
        let mut lines = BufReader::new(File::open(&self.path).ok()?).lines().map_while(Result::ok);
        if lines.next()? != self.fingerprint {
            return None;
        }
        lines.find_map(|line| {
            let (start, rest) = line.split_once(' ')?;
            let (size, name) = rest.split_once(' ')?;
            let start = u64::from_str_radix(start, 16).ok()?;
            let size = u64::from_str_radix(size, 16).ok()?;
            let offset = address.checked_sub(start).filter(|offset| *offset < size)?;
            Some(format!("{name}+{offset:#x}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_in_the_file_of_this_image_only() {
        let path = std::env::temp_dir().join(format!("clickbox-symbols-{}", std::process::id()));
        std::fs::write(&path, "image 1\n200000 10 _start\n200010 4 element::push<a, b>\nbroken\n").unwrap();
        let file = SymbolFile { path, fingerprint: "image 1" };
        let other = SymbolFile { fingerprint: "image 2", ..file.clone() };
        let missing = SymbolFile { path: "/nonexistent".into(), ..file.clone() };
        let found =
            [0x1f_ffff, 0x20_0000, 0x20_000f, 0x20_0012, 0x20_0014].map(|address| file.function(address));
        let none = [other.function(0x20_0000), missing.function(0x20_0000)];
        std::fs::remove_file(&file.path).unwrap();
        let found = found.map(Option::unwrap_or_default);
        assert_eq!(found, ["", "_start+0x0", "_start+0xf", "element::push<a, b>+0x2", ""]);
        assert_eq!(none, [None, None]);
    }
}
