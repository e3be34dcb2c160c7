//! Builds the guest workspace and leaves its images, and their sources, where the library embeds them.
//!
//! The guest has a target folder of its own, inside this crate's output folder: it follows
//! CARGO_TARGET_DIR, and the two cargos never wait for each other's lock. What the outer cargo says about
//! flags and wrappers is not for the guest.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;
use rustc_demangle::demangle;

/// Packages of the guest workspace that are images.
const IMAGES: [&str; 3] = ["clickbox", "corpus", "probe"];

/// What the images are made of.
const SOURCES: [&str; 60] = [
    "crates/boundary/Cargo.toml",
    "crates/boundary/src",
    "crates/capture/Cargo.toml",
    "crates/capture/src",
    "crates/classify/Cargo.toml",
    "crates/classify/src",
    "crates/click-lang/Cargo.toml",
    "crates/click-lang/src",
    "crates/element-derive/Cargo.toml",
    "crates/element-derive/src",
    "crates/element/Cargo.toml",
    "crates/element/src",
    "crates/elements/Cargo.toml",
    "crates/elements/src",
    "crates/engine/Cargo.toml",
    "crates/engine/src",
    "crates/flow-elements/Cargo.toml",
    "crates/flow-elements/src",
    "crates/flow/Cargo.toml",
    "crates/flow/src",
    "crates/function/Cargo.toml",
    "crates/function/src",
    "crates/header-elements/Cargo.toml",
    "crates/header-elements/src",
    "crates/ipsec-elements/Cargo.toml",
    "crates/ipsec-elements/src",
    "crates/lookup/Cargo.toml",
    "crates/lookup/src",
    "crates/packet/Cargo.toml",
    "crates/packet/src",
    "crates/random/Cargo.toml",
    "crates/random/src",
    "crates/reason/Cargo.toml",
    "crates/reason/src",
    "crates/router/Cargo.toml",
    "crates/router/src",
    "crates/sorting/Cargo.toml",
    "crates/sorting/src",
    "crates/trace-elements/Cargo.toml",
    "crates/trace-elements/src",
    "crates/traffic-elements/Cargo.toml",
    "crates/traffic-elements/src",
    "crates/wasm-elements/Cargo.toml",
    "crates/wasm-elements/src",
    "guest/.cargo",
    "guest/Cargo.lock",
    "guest/Cargo.toml",
    "guest/boot",
    "guest/box",
    "guest/corpus",
    "guest/heap",
    "guest/image.ld",
    "guest/link.rs",
    "guest/memory",
    "guest/probe",
    "guest/runtime",
    "sdk/c",
    "sdk/python",
    "sdk/wasm/Cargo.toml",
    "sdk/wasm/src",
];

/// What of it projects of functions do not need: the other images.
const OTHER_IMAGES: [&str; 3] = ["guest/box", "guest/corpus", "guest/probe"];

/// What they need besides: the settings that the packages of the workspace share.
const WORKSPACE: &str = "Cargo.toml";

/// The column of the names of symbols in the map of lld.
const SYMBOL_COLUMN: usize = 65;

/// Variables of the outer build that would change the inner one, besides those of its profiles.
const FOREIGN: [&str; 9] = [
    "CARGO_BUILD_RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_TARGET_DIR",
    "RUSTC",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTDOC",
    "RUSTFLAGS",
];

fn main() {
    let Some(package) = env::var_os("CARGO_MANIFEST_DIR") else { fail("CARGO_MANIFEST_DIR is not set") };
    let root = Path::new(&package).join("../..");
    let guest = root.join("guest");
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", root.join(source).display());
    }
    let Some(out) = env::var_os("OUT_DIR") else { fail("OUT_DIR is not set") };
    // Clippy, what is documented by its compiler, and fuzz targets, which run no box, only need the files to be there.
    if env::var_os("CLIPPY_ARGS").is_some() || env::var_os("CARGO_CFG_FUZZING").is_some() {
        return name_images("none", "", |_| Path::new(&package).join("build.rs"));
    }
    let target = Path::new(&out).join("guest");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // The image is as optimised as the program that it becomes a part of.
    let optimised = env::var("OPT_LEVEL").is_ok_and(|level| level != "0");
    let (profile, folder) = if optimised { ("release", "release") } else { ("dev", "debug") };
    let mut build = Command::new(cargo);
    build.args(["build", "--profile", profile, "--locked", "--target-dir"]).arg(&target).current_dir(&guest);
    // The image, and its size, are the same wherever it is built. The flags of the guest's configuration are kept. `dist/build`
    // has the same ones, so that it compiles no crate again for another image.
    match (root.canonicalize(), cargo_home()) {
        (Ok(root), Some(home)) => {
            let flags = [root, home].map(|path| format!("--remap-path-prefix={}/=", path.display()));
            build.arg("--config").arg(format!("build.rustflags={flags:?}"));
        }
        (Err(error), _) => fail(&format!("the folder of the workspace: {error}")),
        (_, None) => fail("neither CARGO_HOME nor HOME is set"),
    }
    for name in FOREIGN {
        build.env_remove(name);
    }
    // A program that is built with its symbols would embed an image with symbols.
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("CARGO_PROFILE_")) {
        build.env_remove(name);
    }
    match build.status() {
        Ok(status) if status.success() => {}
        Ok(status) => fail(&format!("the build of the box image ended with {status}")),
        Err(error) => fail(&format!("cargo can't be started for the box image: {error}")),
    }
    println!("cargo::rerun-if-changed={}", root.join(WORKSPACE).display());
    let written = beside_the_program(Path::new(&out))
        .and_then(|folder| fs::write(folder.join("clickbox.sources"), archive(&root)?));
    if let Err(error) = written {
        fail(&format!("the sources of the box image: {error}"));
    }
    let profile_folder = target.join("x86_64-unknown-linux-gnu").join(folder);
    match write_symbols(&profile_folder, &profile_folder.join("clickbox"), Path::new(&out)) {
        Ok(fingerprint) => name_images(profile, &fingerprint, |image| profile_folder.join(image)),
        Err(error) => fail(&format!("the symbols of the box image: {error}")),
    }
}

/// Tells the library where the images are.
fn name_images(profile: &str, fingerprint: &str, path: impl Fn(&str) -> PathBuf) {
    println!("cargo::rustc-env=IMAGE_PROFILE={profile}");
    println!("cargo::rustc-env=IMAGE_FINGERPRINT={fingerprint}");
    for image in IMAGES {
        println!("cargo::rustc-env=IMAGE_{}={}", image.to_uppercase(), path(image).display());
    }
}

/// The folder of cargo, with the sources of third-party crates.
fn cargo_home() -> Option<PathBuf> {
    let home = || env::var_os("HOME").map(|home| Path::new(&home).join(".cargo"));
    env::var_os("CARGO_HOME").map(PathBuf::from).or_else(home)
}

/// Writes the symbols of the box image, which crash reports use, to a file beside the program. Returns the image's
/// fingerprint.
fn write_symbols(profile: &Path, image: &Path, out: &Path) -> io::Result<String> {
    let mut hasher = DefaultHasher::new();
    fs::read(image)?.hash(&mut hasher);
    let fingerprint = format!("clickbox {:016x}", hasher.finish());
    // The map that the linker wrote most recently.
    let builds = fs::read_dir(profile.join("build"))?.flatten();
    let boxes = builds.filter(|build| build.file_name().to_string_lossy().starts_with("box-"));
    let maps = boxes.map(|build| build.path().join("out/image.map"));
    let map = maps.max_by_key(|map| fs::metadata(map).and_then(|found| found.modified()).ok());
    let map = fs::read_to_string(map.ok_or(io::ErrorKind::NotFound)?)?;
    let mut symbols = fingerprint.clone() + "\n";
    for line in map.lines() {
        // Address, load address, size, alignment. A symbol's name follows in a column of its own, after those of sections
        // and object files. Functions of assembly code and of C, such as memcpy, have plain names.
        let (Some(numbers), Some(name)) = (line.get(..SYMBOL_COLUMN), line.get(SYMBOL_COLUMN..)) else {
            continue;
        };
        let numbers: Vec<&str> = numbers.split_whitespace().collect();
        if let [address, _, size, _] = numbers[..]
            && size != "0"
            && !name.is_empty()
            && !name.contains(char::is_whitespace)
        {
            symbols += &format!("{address} {size} {:#}\n", demangle(name));
        }
    }
    fs::write(beside_the_program(out)?.join("clickbox.symbols"), symbols)?;
    Ok(fingerprint)
}

/// The folder of the program. OUT_DIR is `<profile>/build/<package>/out`, and the program is in `<profile>`.
fn beside_the_program(out: &Path) -> io::Result<&Path> {
    Ok(out.ancestors().nth(3).ok_or(io::ErrorKind::NotFound)?)
}

/// The sources that a project of a function is built with, compressed: for each file the length of its path and of its
/// contents, 32 bits each, then both.
fn archive(root: &Path) -> io::Result<Vec<u8>> {
    let mut files = vec![root.join(WORKSPACE)];
    let needed = SOURCES.iter().filter(|source| !OTHER_IMAGES.contains(source));
    needed.map(|source| root.join(source)).try_for_each(|source| collect(&source, &mut files))?;
    files.sort();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    for file in files {
        let path = file.strip_prefix(root).map_err(io::Error::other)?.to_string_lossy().into_owned();
        let contents = fs::read(&file)?;
        let contents = without_tests(&contents);
        for length in [path.len(), contents.len()] {
            encoder.write_all(&u32::try_from(length).map_err(io::Error::other)?.to_le_bytes())?;
        }
        encoder.write_all(path.as_bytes())?;
        encoder.write_all(contents)?;
    }
    encoder.finish()
}

/// A source without the unit tests at its end, which a project of a function does not run.
fn without_tests(source: &[u8]) -> &[u8] {
    const START: &[u8] = b"\n#[cfg(test)]\nmod tests {\n";
    const END: &[u8] = b"\n}\n";
    let starts_at = |part: &[u8]| source.windows(part.len()).position(|window| window == part);
    let Some(start) = starts_at(START) else { return source };
    // Nothing but the module follows.
    let ends = source[start..].windows(END.len()).filter(|window| *window == END).count();
    if ends == 1 && source.ends_with(END) { &source[..=start] } else { source }
}

/// Finds the sources in a folder.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if path.is_dir() {
        return fs::read_dir(path)?.try_for_each(|entry| collect(&entry?.path(), files));
    }
    let is_source = |extension: &OsStr| {
        ["c", "h", "ld", "lock", "py", "rs", "toml"].iter().any(|known| extension == *known)
    };
    if path.extension().is_some_and(is_source) {
        files.push(path.to_path_buf());
    }
    Ok(())
}

fn fail(reason: &str) -> ! {
    println!("cargo::error={reason}");
    std::process::exit(1);
}
