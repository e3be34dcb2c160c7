//! Projects of functions that are programs, in C and Python: their files, their build, and their test.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::error::FunctionError;
use super::project::{C_LIBRARY, FunctionName, PYTHON_LIBRARY, SOURCES};
use super::sources;
use crate::error::FileError;

/// The file that marks such a project.
const MANIFEST: &str = "function.toml";

/// What the test of a new project prints: the counters of its function on the capture that comes with it.
const EXPECTED: &str = "passed 500\nexpired 0\n";

/// Checks the syntax of files. `compileall` would leave compiled files behind.
const CHECK: &str = "import ast, sys; [ast.parse(open(name, 'rb').read(), name) for name in sys.argv[1:]]";

/// The language of a function that is a program.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum ProgramLanguage {
    #[default]
    C,
    Python,
}

impl ProgramLanguage {
    /// The place of its library among the sources.
    pub(super) fn library(self) -> &'static str {
        match self {
            Self::C => C_LIBRARY,
            Self::Python => PYTHON_LIBRARY,
        }
    }

    /// The files of a project. In their names and texts, `{name}` and `{word}` stand for the name.
    pub(super) fn files(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::C => C_FILES,
            Self::Python => PYTHON_FILES,
        }
    }
}

const PYTHON_FILES: &[(&str, &str)] = &[
    ("{name}.py", include_str!("../../../templates/python/function.py.txt")),
    ("tests/expected", EXPECTED),
    (MANIFEST, include_str!("../../../templates/python/function.toml.txt")),
    ("Containerfile", include_str!("../../../templates/python/Containerfile.txt")),
    ("README.md", include_str!("../../../templates/python/README.md.txt")),
    (".gitignore", include_str!("../../../templates/python/gitignore.txt")),
];

const C_FILES: &[(&str, &str)] = &[
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
    language: ProgramLanguage,
    #[serde(default)]
    flags: Vec<String>,
}

/// A project that exists.
pub(super) struct Program {
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
    sorting::sort(&mut found);
    Ok(found)
}

/// Runs a program that prints what is wrong itself.
fn run(mut command: Command, what: &'static str) -> Result<(), FunctionError> {
    let is_python = command.get_program() == PYTHON;
    let failed = if is_python { FunctionError::Python } else { FunctionError::Compiler };
    match command.status().map_err(failed)? {
        status if status.success() => Ok(()),
        status => Err(FunctionError::Failed(what, status)),
    }
}

/// The interpreter.
const PYTHON: &str = "python3";

fn compiler() -> Command {
    Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
}

impl Program {
    /// The project in a folder, if it is one of a program. If it has the library of another program, that is replaced.
    pub(super) fn open(folder: &Path) -> Result<Option<Program>, FunctionError> {
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
            sources::unpack(&sources, |path| path.starts_with(manifest.language.library()))?;
        }
        let folder = folder.canonicalize().map_err(failed(folder))?;
        Ok(Some(Program { folder, manifest }))
    }

    /// Builds the program. Returns its path.
    pub(super) fn build(&self, is_static: bool) -> Result<PathBuf, FunctionError> {
        match self.manifest.language {
            ProgramLanguage::C => self.compile(is_static, &self.manifest.name),
            ProgramLanguage::Python => self.pack(),
        }
    }

    /// Packs the function and the library into one file.
    fn pack(&self) -> Result<PathBuf, FunctionError> {
        let name = &self.manifest.name;
        let (packed, library) =
            (self.folder.join("build/app"), self.folder.join(SOURCES).join(self.manifest.language.library()));
        let _ = fs::remove_dir_all(&packed);
        fs::create_dir_all(&packed).map_err(failed(&packed))?;
        let sources = [files(&self.folder, "py")?, files(&library, "py")?].concat();
        let mut check = Command::new(PYTHON);
        check.args(["-c", CHECK]).args(&sources);
        run(check, "the check of the function")?;
        for source in sources {
            let is_main = source == self.folder.join(format!("{name}.py"));
            let file =
                if is_main { OsStr::new("__main__.py") } else { source.file_name().unwrap_or_default() };
            fs::copy(&source, packed.join(file)).map_err(failed(&source))?;
        }
        let program = self.folder.join(format!("{name}.pyz"));
        let mut pack = Command::new(PYTHON);
        pack.args(["-m", "zipapp", "--python", "/usr/bin/env python3", "--output"]).arg(&program).arg(packed);
        run(pack, "the build of the function")?;
        Ok(program)
    }

    /// Compiles the library and the program, which gets this path in the folder.
    fn compile(&self, is_static: bool, path: &str) -> Result<PathBuf, FunctionError> {
        let (build, library) =
            (self.folder.join("build"), self.folder.join(SOURCES).join(self.manifest.language.library()));
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
        let program = self.folder.join(path);
        let mut command = compiler();
        command.args(["-std=gnu11", "-O2"]).args(&self.manifest.flags).arg("-I").arg(library);
        command.args(is_static.then_some("-static")).arg("-o").arg(&program);
        command.args(files(&self.folder, "c")?).arg(archive);
        run(command, "the build of the function")?;
        Ok(program)
    }

    /// Runs the program on the capture, and compares what it prints.
    pub(super) fn test(&self) -> Result<(), FunctionError> {
        let program = match self.manifest.language {
            // The static program that was built for a container stays.
            ProgramLanguage::C => self.compile(false, "build/test")?,
            ProgramLanguage::Python => self.pack()?,
        };
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
