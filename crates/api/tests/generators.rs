//! Public generators of clients accept the OpenAPI document.
//!
//! The tests need `openapi-python-client` (PyPI, 0.29.1) and `openapi-typescript` (npm, 7.13) on the `PATH`.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use api::operation::TABLE;
use test_support::{Capability, skip};

/// Media types of streams: the Python generator omits such replies with a warning.
const STREAMS: [&str; 2] = ["application/x-ndjson", "application/vnd.tcpdump.pcap"];

/// A folder with the document in it, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("clickbox-openapi-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
        fs::copy(document, path.join("openapi.json")).expect("the document");
        Self(path)
    }

    /// Runs a generator in the folder and returns what it printed. `None`: it is not installed.
    fn run(&self, generator: &str, arguments: &[&str]) -> Option<String> {
        let output = match Command::new(generator).args(arguments).current_dir(&self.0).output() {
            Ok(output) => output,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                skip(Capability::Openapi, format_args!("{generator} is not installed"));
                return None;
            }
            Err(error) => panic!("{generator}: {error}"),
        };
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{generator}: {}: {text}", output.status);
        Some(text.into_owned())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_python_client_is_generated() {
    let folder = Folder::new("python");
    let arguments = ["generate", "--path", "openapi.json", "--output-path", "client", "--meta", "none"];
    let Some(text) = folder.run("openapi-python-client", &arguments) else { return };
    for line in text.lines().filter(|line| line.contains("Cannot parse") || line.contains("Unsupported")) {
        assert!(STREAMS.iter().any(|media| line.contains(&format!("content_type {media})"))), "{line}");
    }
    for operation in TABLE {
        let path = folder.0.join(format!("client/api/default/{}.py", operation.name()));
        assert!(path.exists(), "there is no function for {}: {text}", operation.name());
    }
}

#[test]
fn typescript_types_are_generated() {
    let folder = Folder::new("typescript");
    let arguments = ["openapi.json", "--output", "client.ts"];
    if folder.run("openapi-typescript", &arguments).is_none() {
        return;
    }
    let types = fs::read_to_string(folder.0.join("client.ts")).expect("the types");
    for operation in TABLE {
        let name = operation.name();
        assert!(types.contains(&format!("operations[\"{name}\"]")), "there is no type for {name}");
    }
}
