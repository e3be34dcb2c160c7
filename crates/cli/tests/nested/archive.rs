//! An initramfs archive for the kernel: cpio, in the format "newc".

use std::collections::BTreeSet;
use std::path::Path;

/// An archive under construction.
pub(crate) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
    folders: BTreeSet<String>,
}

impl Archive {
    /// An archive with a console device for the init program.
    pub(crate) fn new() -> Archive {
        let mut archive = Archive { bytes: Vec::new(), entries: 0, folders: BTreeSet::new() };
        archive.folder("dev");
        archive.entry("dev/console", 0o020_600, b"", [5, 1]);
        archive
    }

    /// Adds a folder, once.
    pub(crate) fn folder(&mut self, name: &str) {
        if self.folders.insert(name.to_string()) {
            self.entry(name, 0o040_755, b"", [0, 0]);
        }
    }

    /// Adds an executable file in an existing folder.
    pub(crate) fn file(&mut self, name: &str, bytes: &[u8]) {
        self.entry(name, 0o100_755, bytes, [0, 0]);
    }

    /// Adds a file of this machine under the same path, with its parent folders.
    pub(crate) fn path(&mut self, path: &Path) {
        let name = path.to_str().expect("a plain path").trim_start_matches('/');
        for (end, _) in name.match_indices('/') {
            self.folder(&name[..end]);
        }
        self.file(name, &std::fs::read(path).expect("a readable file"));
    }

    /// The archive.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, b"", [0, 0]);
        self.bytes
    }

    /// A header of hexadecimal numbers, the name and the contents, each padded to four bytes.
    fn entry(&mut self, name: &str, mode: u32, content: &[u8], device: [u32; 2]) {
        self.entries += 1;
        let [major, minor] = device;
        let (size, length) = (content.len() as u32, name.len() as u32 + 1);
        let numbers = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, major, minor, length, 0];
        self.bytes.extend(b"070701");
        for number in numbers {
            self.bytes.extend(format!("{number:08x}").bytes());
        }
        self.bytes.extend(name.bytes());
        self.bytes.push(0);
        self.fill();
        self.bytes.extend(content);
        self.fill();
    }

    fn fill(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}
