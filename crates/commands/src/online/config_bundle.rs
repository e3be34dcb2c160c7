//! A configuration together with the files that it reads, as sent to a box.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use api::{ConfigurationName, CreateBox, File, Install, Value};
use click_lang::{Compiled, Library};
use flate2::read::MultiGzDecoder;

use crate::configuration::{input_files, registry};
use crate::error::FileError;
use crate::source::{Source, SourceText};
use crate::value::{self, ValueError};

/// The first bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Limit of the size of an unpacked file: more than a box accepts. Keeps a small compressed file from filling the memory.
const MAX_UNPACKED: u64 = 256 << 20;

/// Longest text in which file names are searched for. Daemons refuse longer texts; compiling one here would take
/// gigabytes of memory.
const MAX_SEARCHED_TEXT: usize = 64 << 20;

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
        let text = Source::File(path_or_stdin).read();
        let text = text.map_err(|error| if is_stdin { error } else { error.with_path(Path::new(path)) })?;
        let text = SourceText { name: if is_stdin { text.name } else { path.to_string() }, ..text };
        let mut bundle = ConfigBundle { text, files: BTreeMap::new() };
        bundle.add_named_files(folder);
        for (name, path) in extra_files {
            let contents = read(&folder.join(path)).map_err(|error| FileError::new(path, error))?;
            bundle.files.insert(name.clone(), contents);
        }
        Ok(bundle)
    }

    /// A configuration whose text and files are given.
    pub(crate) fn inline(text: SourceText, files: BTreeMap<String, Value>) -> ConfigBundle {
        ConfigBundle { text, files: files.into_iter().map(|(name, contents)| (name, contents.0)).collect() }
    }

    fn add_named_files(&mut self, folder: &Path) {
        if self.text.text.len() > MAX_SEARCHED_TEXT {
            return;
        }
        let libraries = RefCell::new(BTreeMap::new());
        let graph = compile(&self.text, folder, &libraries).graph;
        self.files = libraries.into_inner();
        for name in graph.elements.iter().flat_map(input_files) {
            let path = folder.join(&name);
            if path.is_file()
                && let Ok(contents) = read(&path)
            {
                self.files.insert(name, contents);
            }
        }
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
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let contents = std::fs::read(path)?;
    if !contents.starts_with(&GZIP) {
        return Ok(contents);
    }
    let mut unpacked = Vec::new();
    MultiGzDecoder::new(contents.as_slice()).take(MAX_UNPACKED).read_to_end(&mut unpacked)?;
    Ok(unpacked)
}

/// Compiles a configuration to find its files. Keeps the libraries that it requires.
fn compile(text: &SourceText, folder: &Path, libraries: &RefCell<BTreeMap<String, Vec<u8>>>) -> Compiled {
    let is_class = |name: &str| registry().contains(name);
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
             FromDump(FILENAME nowhere.dump) -> Discard;",
        );
        let bundle =
            ConfigBundle::read("a.click", &folder, &[("x".into(), "extra".into())]).expect("a bundle");
        let names: Vec<_> = bundle.files.keys().map(String::as_str).collect();
        assert_eq!((bundle.text.name.as_str(), names), ("a.click", vec!["b.click", "in.dump", "x"]));
        assert!(
            ConfigBundle::read("nowhere.click", &folder, &[])
                .is_err_and(|error| error.to_string() == "nowhere.click")
        );
        std::fs::remove_dir_all(&folder).expect("the folder goes");
    }
}
