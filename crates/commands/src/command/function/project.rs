//! The project of a function: its names, its folder, and cargo in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::error::{FunctionError, MODULE_BUILD};
use super::sources;
use crate::error::FileError;

/// The folder of a project with the sources that it is built with.
pub(super) const SOURCES: &str = "clickbox";

/// The places of the libraries for functions that are programs among the sources.
pub(super) const C_LIBRARY: &str = "sdk/c/";
pub(super) const PYTHON_LIBRARY: &str = "sdk/python/";

/// The most characters of a name: with a prefix and a reason it is the name of a drop reason.
const MAX_NAME: usize = 40;

/// Names that cargo, Rust, C or a project use. Modules of Python are among them that the file of a project would hide.
const RESERVED: &[&str] = &[
    "alloc",
    "array",
    "as",
    "asm",
    "async",
    "auto",
    "await",
    "bitflags",
    "boot",
    "boundary",
    "break",
    "build",
    "capture",
    "case",
    "char",
    "classify",
    "click-lang",
    "clickbox",
    "clickbox-function",
    "collections",
    "const",
    "continue",
    "core",
    "crate",
    "default",
    "deps",
    "do",
    "double",
    "dyn",
    "element",
    "element-derive",
    "elements",
    "else",
    "engine",
    "enum",
    "examples",
    "extern",
    "false",
    "float",
    "flow",
    "flow-elements",
    "fn",
    "for",
    "function",
    "gen",
    "goto",
    "guest",
    "header-elements",
    "heap",
    "if",
    "image",
    "impl",
    "in",
    "incremental",
    "inline",
    "int",
    "ipsec-elements",
    "let",
    "libm",
    "long",
    "lookup",
    "loop",
    "match",
    "memory",
    "mmap",
    "mod",
    "move",
    "mut",
    "os",
    "packet",
    "platform",
    "proc-macro",
    "pub",
    "quote",
    "random",
    "reason",
    "ref",
    "register",
    "restrict",
    "return",
    "router",
    "runtime",
    "select",
    "self",
    "short",
    "signal",
    "signed",
    "sizeof",
    "socket",
    "spin",
    "static",
    "std",
    "struct",
    "super",
    "switch",
    "syn",
    "sys",
    "test",
    "threading",
    "time",
    "trace-elements",
    "traffic-elements",
    "trait",
    "true",
    "type",
    "typedef",
    "typeof",
    "union",
    "unsafe",
    "unsigned",
    "use",
    "void",
    "volatile",
    "wasm",
    "wasm-elements",
    "wasmi",
    "wasmparser",
    "where",
    "while",
];

/// The name of a function, and what is derived from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FunctionName(String);

impl FunctionName {
    /// Checks a name.
    pub(super) fn new(text: &str) -> Result<FunctionName, FunctionError> {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let bytes = text.as_bytes();
        let is_good = bytes.first().is_some_and(u8::is_ascii_lowercase)
            && bytes.len() <= MAX_NAME
            && bytes.iter().all(|byte| is_plain(*byte))
            && !text.ends_with('-')
            && !text.contains("--");
        if !is_good {
            return Err(FunctionError::Name(text.into()));
        }
        if RESERVED.contains(&text) {
            return Err(FunctionError::ReservedName(text.into()));
        }
        Ok(FunctionName(text.into()))
    }

    /// The name.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The class: `rate-limit` is `RateLimit`.
    pub(super) fn class(&self) -> String {
        let capital = |word: &str| {
            let mut letters = word.chars();
            let first = letters.next().map(|letter| letter.to_ascii_uppercase());
            first.into_iter().chain(letters).collect::<String>()
        };
        self.0.split('-').map(capital).collect()
    }

    /// The name in a configuration, in Rust and in drop reasons: `rate_limit`.
    pub(super) fn word(&self) -> String {
        self.0.replace('-', "_")
    }
}

/// Whether a source is one that projects in Rust need, those for WebAssembly included.
pub(super) fn is_rust(path: &str) -> bool {
    ![C_LIBRARY, PYTHON_LIBRARY].iter().any(|library| path.starts_with(library))
}

/// What of `Cargo.toml` is read.
#[derive(Deserialize)]
struct Manifest {
    package: Package,
}

#[derive(Deserialize)]
struct Package {
    name: String,
}

/// A project that exists.
pub(super) struct Project {
    /// Its folder, as an absolute path.
    pub(super) folder: PathBuf,
    /// The name of its package.
    pub(super) name: String,
}

impl Project {
    /// Finds the project in a folder. If it has the sources of another program, they are replaced.
    pub(super) fn open(folder: &Path) -> Result<Project, FunctionError> {
        let failed = |path: &Path, error| FunctionError::File(FileError::new(path, error));
        let folder = folder.canonicalize().map_err(|error| failed(folder, error))?;
        let manifest = folder.join("Cargo.toml");
        let sources = folder.join(SOURCES);
        if !manifest.is_file() || !folder.join("image/Cargo.toml").is_file() || !sources.is_dir() {
            return Err(FunctionError::NoProject(folder));
        }
        let text = fs::read_to_string(&manifest).map_err(|error| failed(&manifest, error))?;
        let Manifest { package } =
            toml::from_str(&text).map_err(|error| FunctionError::Manifest(manifest.clone(), error))?;
        if !sources::is_current(&sources)? {
            eprintln!("the sources in {} are replaced by those of this program", sources.display());
            sources::unpack(&sources, is_rust)?;
        }
        Ok(Project { folder, name: package.name })
    }

    /// Whether it is a module of WebAssembly: its test and its image are crates of their own.
    pub(super) fn is_wasm(&self) -> bool {
        self.folder.join("test/Cargo.toml").is_file()
    }

    /// Builds the module. Returns its path.
    pub(super) fn build_module(&self) -> Result<PathBuf, FunctionError> {
        const TARGET: &str = "wasm32-unknown-unknown";
        let mut cargo = self.cargo("");
        cargo.args(["build", "--release", "--target", TARGET, "--target-dir", "target"]);
        self.isolate(&mut cargo);
        run(cargo, MODULE_BUILD)?;
        let built = format!("target/{TARGET}/release/{}.wasm", self.name.replace('-', "_"));
        let module = self.folder.join(format!("{}.wasm", self.name));
        let copied = fs::copy(self.folder.join(built), &module);
        copied.map_err(|error| FunctionError::File(FileError::new(&module, error)))?;
        Ok(module)
    }

    /// Lets cargo make the same wherever it runs.
    pub(super) fn isolate(&self, cargo: &mut Command) {
        // The flags of the project's configuration are kept.
        let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
        let home =
            home.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cargo"))).unwrap_or_default();
        let flags = [&self.folder, &home].map(|from| format!("--remap-path-prefix={}/=", from.display()));
        cargo.arg("--config").arg(format!("build.rustflags={flags:?}"));
        // They would replace the flags without which an image is none.
        for name in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_RUSTFLAGS", "CARGO_BUILD_TARGET"] {
            cargo.env_remove(name);
        }
    }

    /// Cargo in a folder of the project.
    pub(super) fn cargo(&self, folder: &str) -> Command {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.current_dir(self.folder.join(folder));
        command
    }
}

/// Runs cargo. What it prints goes to standard error and output as they are.
pub(super) fn run(mut cargo: Command, what: &'static str) -> Result<(), FunctionError> {
    match cargo.status().map_err(FunctionError::Cargo)? {
        status if status.success() => Ok(()),
        status => Err(FunctionError::Failed(what, status)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_crates_classes_and_reasons() {
        let name = FunctionName::new("rate-limit-2").expect("a name");
        assert_eq!(
            (name.as_str(), name.class().as_str(), name.word().as_str()),
            ("rate-limit-2", "RateLimit2", "rate_limit_2")
        );
        let reason = format!("user:{}/over_limit", "x".repeat(MAX_NAME));
        assert!(reason::is_user_name(&reason));
        for bad in ["", "A", "2x", "-x", "x-", "x--y", "a_b", "a b", "../x", "ä", &"x".repeat(MAX_NAME + 1)]
        {
            assert!(matches!(FunctionName::new(bad), Err(FunctionError::Name(_))), "{bad:?}");
        }
        for bad in RESERVED {
            assert!(matches!(FunctionName::new(bad), Err(FunctionError::ReservedName(_))), "{bad:?}");
        }
    }
}
