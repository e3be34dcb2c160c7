//! Projects of functions in C: their files, their build, and their test.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::error::FunctionError;
use super::project::{FunctionName, LIBRARY, SOURCES};
use super::sources;
use crate::error::FileError;

/// The file that marks a project in C.
const MANIFEST: &str = "function.toml";

/// What the test of a new project prints: the counters of its function on the capture that comes with it.
const EXPECTED: &str = "passed 500\nexpired 0\n";

/// The files of a project. In their names and texts, `{name}` and `{word}` stand for the name.
pub(super) const FILES: &[(&str, &str)] = &[
    ("{name}.c", include_str!("../../../templates/c/function.c.txt")),
    ("tests/expected", EXPECTED),
    (MANIFEST, include_str!("../../../templates/c/function.toml.txt")),
    ("Containerfile", include_str!("../../../templates/c/Containerfile.txt")),
    ("README.md", include_str!("../../../templates/c/README.md.txt")),
    (".gitignore", include_str!("../../../templates/c/gitignore.txt")),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    name: String,
    #[serde(default)]
    flags: Vec<String>,
}

/// A project that exists.
pub(super) struct CProject {
    folder: PathBuf,
    manifest: Manifest,
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> FunctionError {
    let path = path.to_path_buf();
    move |error| FunctionError::File(FileError::new(&path, error))
}

/// The files with this extension in a folder, sorted.
fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, FunctionError> {
    let entries = fs::read_dir(folder).map_err(failed(folder))?.flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> =
        entries.filter(|path| path.extension() == Some(OsStr::new(extension))).collect();
    found.sort();
    Ok(found)
}

/// Runs a program that prints what is wrong itself.
fn run(mut command: Command, what: &'static str) -> Result<(), FunctionError> {
    match command.status().map_err(FunctionError::Compiler)? {
        status if status.success() => Ok(()),
        status => Err(FunctionError::Failed(what, status)),
    }
}

fn compiler() -> Command {
    Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
}

impl CProject {
    /// The project in a folder, if it is one in C. If it has the library of another program, that is replaced.
    pub(super) fn open(folder: &Path) -> Result<Option<CProject>, FunctionError> {
        let path = folder.join(MANIFEST);
        if !path.is_file() {
            return Ok(None);
        }
        let text = fs::read_to_string(&path).map_err(failed(&path))?;
        let manifest: Manifest =
            toml::from_str(&text).map_err(|error| FunctionError::Manifest(path, error))?;
        FunctionName::new(&manifest.name)?;
        let sources = folder.join(SOURCES);
        if !sources::is_current(&sources)? {
            sources::unpack(&sources, |path| path.starts_with(LIBRARY))?;
        }
        let folder = folder.canonicalize().map_err(failed(folder))?;
        Ok(Some(CProject { folder, manifest }))
    }

    /// Builds the library and the program. Returns the program's path.
    pub(super) fn build(&self, is_static: bool) -> Result<PathBuf, FunctionError> {
        let (build, library) = (self.folder.join("build"), self.folder.join(SOURCES).join(LIBRARY));
        fs::create_dir_all(&build).map_err(failed(&build))?;
        let archive = build.join("libclickbox.a");
        let _ = fs::remove_file(&archive);
        let mut objects = Command::new("ar");
        objects.arg("rcs").arg(&archive);
        for source in files(&library, "c")? {
            let object = build.join(source.file_name().unwrap_or_default()).with_extension("o");
            let mut command = compiler();
            command.args(["-std=c11", "-O2", "-c", "-o"]).arg(&object).arg(source);
            run(command, "the build of the library")?;
            objects.arg(object);
        }
        run(objects, "the build of the library")?;
        let program = self.folder.join(&self.manifest.name);
        let mut command = compiler();
        command.args(["-std=c11", "-O2"]).args(&self.manifest.flags).arg("-I").arg(library);
        command.args(is_static.then_some("-static")).arg("-o").arg(&program);
        command.args(files(&self.folder, "c")?).arg(archive);
        run(command, "the build of the function")?;
        Ok(program)
    }

    /// Runs the program on the capture, and compares what it prints.
    pub(super) fn test(&self) -> Result<(), FunctionError> {
        let program = self.build(false)?;
        let written = self.folder.join("build/written.pcap");
        let mut command = Command::new(program);
        command.current_dir(&self.folder).args(["--read", "tests/traffic.pcap", "--write"]).arg(written);
        let output = command.output().map_err(FunctionError::Compiler)?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr).trim().to_string();
            return Err(FunctionError::Run(text, output.status));
        }
        let path = self.folder.join("tests/expected");
        let expected = fs::read(&path).map_err(failed(&path))?;
        if expected != output.stdout {
            let [expected, found] =
                [&expected, &output.stdout].map(|text| String::from_utf8_lossy(text).into_owned());
            return Err(FunctionError::Different { path, expected, found });
        }
        Ok(())
    }
}
