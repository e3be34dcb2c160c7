//! A configuration together with the files that it reads, as sent to a box.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use api::{ConfigurationName, CreateBox, File, Install, Value};
use click_lang::{Compiled, Library};
use flate2::read::MultiGzDecoder;

use crate::configuration::{WASM, input_files, registry};
use crate::error::FileError;
use crate::source::{Source, SourceText};
use crate::value::{self, ValueError};

/// The first bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A configuration and its files.
pub(crate) struct ConfigBundle {
    /// The text, with its name in diagnostics.
    pub(crate) text: SourceText,
    /// The files, by their names in the configuration.
    files: BTreeMap<String, Vec<u8>>,
}

impl ConfigBundle {
    /// Reads a configuration and the files that it names: captures, and the libraries that it requires. Relative paths
    /// start at `folder`. Missing files are left out; the box reports them.
    pub(crate) fn read(
        path: &str,
        folder: &Path,
        extra_files: &[(String, PathBuf)],
    ) -> Result<ConfigBundle, FileError> {
        let path_or_stdin =
            if path == "-" { path.to_string() } else { folder.join(path).to_string_lossy().into_owned() };
        let is_stdin = path == "-";
        if !is_stdin {
            // Before the file is read, because it may not fit the memory. Other errors are those of reading.
            let length = std::fs::metadata(&path_or_stdin).map_or(0, |found| found.len());
            check_length(length).map_err(|error| FileError::new(Path::new(path), error))?;
        }
        let text = Source::File(path_or_stdin).read();
        let text = text.map_err(|error| if is_stdin { error } else { error.with_path(Path::new(path)) })?;
        let text = SourceText { name: if is_stdin { text.name } else { path.to_string() }, ..text };
        let mut bundle = ConfigBundle { text, files: BTreeMap::new() };
        bundle.add_named_files(folder)?;
        bundle.add_files(folder, extra_files)?;
        Ok(bundle)
    }

    fn add_files(&mut self, folder: &Path, files: &[(String, PathBuf)]) -> Result<(), FileError> {
        for (name, path) in files {
            let contents = read(&folder.join(path)).map_err(|error| FileError::new(path, error))?;
            self.files.insert(name.clone(), contents);
        }
        Ok(())
    }

    /// No text: the image of the box has a configuration of its own.
    pub(crate) fn of_image(name: &str, extra_files: &[(String, PathBuf)]) -> Result<ConfigBundle, FileError> {
        let text = SourceText { name: format!("box {name}"), text: String::new() };
        let mut bundle = ConfigBundle { text, files: BTreeMap::new() };
        bundle.add_files(Path::new(""), extra_files)?;
        Ok(bundle)
    }

    /// A configuration whose text and files are given.
    pub(crate) fn inline(text: SourceText, files: BTreeMap<String, Value>) -> ConfigBundle {
        ConfigBundle { text, files: files.into_iter().map(|(name, contents)| (name, contents.0)).collect() }
    }

    fn add_named_files(&mut self, folder: &Path) -> Result<(), FileError> {
        // The daemon refuses the text, and compiling it here would take gigabytes of memory.
        if self.text.text.len() > File::MAX_BYTES {
            return Ok(());
        }
        let libraries = RefCell::new(BTreeMap::new());
        let graph = compile(&self.text, folder, &libraries).graph;
        self.files = libraries.into_inner();
        for name in graph.elements.iter().flat_map(input_files) {
            let path = folder.join(&name);
            match read(&path) {
                Ok(contents) => drop(self.files.insert(name, contents)),
                Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                    return Err(FileError::new(&path, error));
                }
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// The request that creates a box with it.
    pub(crate) fn create(&self, name: api::BoxName) -> CreateBox {
        let source = Some(self.text.name.clone());
        CreateBox { source, files: self.files(), ..CreateBox::new(name, self.text.text.clone()) }
    }

    /// The request that installs it in a box.
    pub(crate) fn install(&self) -> Install {
        Install {
            configuration: self.text.text.clone(),
            source: Some(self.text.name.clone()),
            files: self.files(),
            uploads: Vec::new(),
        }
    }

    fn files(&self) -> Vec<File> {
        let file = |(name, contents): (&String, &Vec<u8>)| File {
            name: name.clone(),
            contents: Value(contents.clone()),
        };
        self.files.iter().map(file).collect()
    }
}

/// Reads a file, and unpacks it if it is compressed by gzip, which a box can't do itself.
///
/// # Errors
///
/// A file that is longer than a box accepts is not read: it may not fit the memory.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let found = std::fs::metadata(path)?;
    if !found.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    check_length(found.len())?;
    let limit = File::MAX_BYTES as u64 + 1;
    let mut contents = Vec::new();
    // The file may grow meanwhile.
    std::fs::File::open(path)?.take(limit).read_to_end(&mut contents)?;
    if contents.starts_with(&GZIP) {
        let mut unpacked = Vec::new();
        MultiGzDecoder::new(contents.as_slice()).take(limit).read_to_end(&mut unpacked)?;
        contents = unpacked;
    }
    check_length(contents.len() as u64)?;
    Ok(contents)
}

/// Returns an error if a file is longer than a box accepts.
fn check_length(bytes: u64) -> io::Result<()> {
    if bytes > File::MAX_BYTES as u64 {
        let message = format!("it has at least {bytes} bytes, and a box accepts {} bytes", File::MAX_BYTES);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(())
}

/// Compiles a configuration to find its files. Keeps the libraries that it requires.
fn compile(text: &SourceText, folder: &Path, libraries: &RefCell<BTreeMap<String, Vec<u8>>>) -> Compiled {
    let is_class = |name: &str| name == WASM || registry().contains(name);
    // A box looks up a library only by its name in `require`, not by the folder of the requiring file.
    let reader = |name: &str, from: &str| {
        let path = Path::new(from).join(name);
        let text = std::fs::read_to_string(folder.join(&path)).ok()?;
        libraries.borrow_mut().insert(name.to_string(), text.clone().into_bytes());
        Some(Library { path: path.to_string_lossy().into_owned(), text })
    };
    let mut options = click_lang::Options::new(&text.name, &is_class);
    options.reader = Some(&reader);
    click_lang::compile(&text.text, &options)
}

/// Parses `NAME=FILE` into the name of a configuration and its file.
pub(crate) fn named(text: &str) -> Result<(ConfigurationName, String), ValueError> {
    let (name, file) = value::pair(text, "NAME=FILE")?;
    Ok((name.parse()?, file))
}

/// Parses `NAME=PATH` into a file's name in the configuration and its path. A path alone is its own name.
pub(crate) fn file(text: &str) -> (String, PathBuf) {
    match text.split_once('=') {
        Some((name, path)) => (name.to_string(), path.into()),
        None => (text.to_string(), text.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_no_box_accepts_are_not_read() {
        let folder = std::env::temp_dir().join(format!("clickbox-large-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("a.click"), "FromDump(in.dump, STOP true) -> Discard;").expect("a file");
        // A terabyte without contents.
        for name in ["in.dump", "large.click"] {
            std::fs::File::create(folder.join(name)).and_then(|file| file.set_len(1 << 40)).expect("a file");
        }
        let refusal = |path: &str, extra: &[(String, PathBuf)]| {
            let error = ConfigBundle::read(path, &folder, extra).err().expect("an error");
            api::with_causes(&error)
        };
        let large = ("x".to_string(), PathBuf::from("in.dump"));
        for message in [refusal("a.click", &[]), refusal("large.click", &[]), refusal("a.click", &[large])] {
            assert!(message.contains("a box accepts 67043328 bytes"), "{message}");
        }
        std::fs::remove_dir_all(&folder).expect("the folder goes");
    }

    #[test]
    fn files_named_by_a_configuration_are_bundled() {
        let folder = std::env::temp_dir().join(format!("clickbox-bundle-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("a file");
        write("in.dump", "dump");
        write("b.click", "elementclass B { input -> output }");
        write("extra", "more");
        write(
            "a.click",
            "require(library b.click) FromDump(\"in.dump\", STOP true) -> B -> ToDump(out.dump); \
             FromDump(FILENAME nowhere.dump) -> Wasm(f.wasm, FUEL 5) -> Wasm(FILE \"g.wasm\") -> Discard;",
        );
        write("f.wasm", "f");
        write("g.wasm", "g");
        let bundle =
            ConfigBundle::read("a.click", &folder, &[("x".into(), "extra".into())]).expect("a bundle");
        let names: Vec<_> = bundle.files.keys().map(String::as_str).collect();
        assert_eq!(
            (bundle.text.name.as_str(), names),
            ("a.click", vec!["b.click", "f.wasm", "g.wasm", "in.dump", "x"])
        );
        assert!(
            ConfigBundle::read("nowhere.click", &folder, &[])
                .is_err_and(|error| error.to_string() == "nowhere.click")
        );
        std::fs::remove_dir_all(&folder).expect("the folder goes");
    }
}
