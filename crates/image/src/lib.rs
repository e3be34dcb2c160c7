//! The box images, and their sources, embedded as bytes.
//!
//! `cargo build` builds them from the `guest/` workspace; no other setup is needed. Each is a self-contained ELF file,
//! which a sandbox maps and runs in a virtual machine or as a process.
//!
//! Absent on purpose: the sandboxes that run the images, and all settings at run time.

/// The image of a box: the engine with all of its elements.
pub static CLICKBOX: &[u8] = include_bytes!(env!("IMAGE_CLICKBOX"));

/// The fingerprint of [`CLICKBOX`]. Its symbols are in a file beside the program, `clickbox.symbols`, that begins with it.
pub static CLICKBOX_FINGERPRINT: &str = env!("IMAGE_FINGERPRINT");

/// The corpus runner: a program for tests, with the elements of [`CLICKBOX`], that runs configurations in simulated
/// time.
pub static CORPUS: &[u8] = include_bytes!(env!("IMAGE_CORPUS"));

/// The probe: a program for tests and measurements of the sandboxes, without an engine.
pub static PROBE: &[u8] = include_bytes!(env!("IMAGE_PROBE"));

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// Bytes that the image of a box may have with as many classes as [`CLASSES`]: every box of a host shares them, but
    /// each host loads them, and the program carries them.
    const MOST_BYTES: usize = 3_000_000;

    /// Bytes that each further class may add, on average.
    const MOST_BYTES_FOR_A_CLASS: usize = 8_000;

    /// Classes when [`MOST_BYTES`] was set.
    const CLASSES: usize = 213;

    /// How much larger an image is that is not optimised.
    const UNOPTIMISED: usize = 4;

    #[test]
    fn the_image_of_a_box_stays_small() {
        let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/elements");
        let pages = fs::read_dir(reference).unwrap().flatten();
        let classes = pages.filter(|page| page.file_name() != "README.md").count();
        let factor = if env!("IMAGE_PROFILE") == "release" { 1 } else { UNOPTIMISED };
        let most = factor * (MOST_BYTES + classes.saturating_sub(CLASSES) * MOST_BYTES_FOR_A_CLASS);
        assert!(
            CLICKBOX.len() <= most,
            "{} bytes with {classes} classes: {most} are allowed",
            CLICKBOX.len()
        );
    }

    /// The sources for projects of functions are in a file beside the program.
    #[test]
    fn the_sources_stay_small() {
        let path = Path::new(env!("OUT_DIR")).join("../../../clickbox.sources");
        let bytes = fs::metadata(path).unwrap().len();
        assert!((100_000..1_000_000).contains(&bytes), "{bytes} bytes");
    }

    /// A crash in `memcpy` is named as well as one in an element.
    #[test]
    fn the_symbols_name_functions_of_all_kinds() {
        let path = Path::new(env!("OUT_DIR")).join("../../../clickbox.symbols");
        let symbols = fs::read_to_string(path).unwrap();
        let (fingerprint, functions) = symbols.split_once('\n').unwrap();
        assert_eq!(fingerprint, CLICKBOX_FINGERPRINT);
        let names: Vec<&str> = functions.lines().filter_map(|line| line.splitn(3, ' ').nth(2)).collect();
        assert!(names.contains(&"memcpy"), "a function with a plain name");
        for start in ["core::", "engine::"] {
            assert!(names.iter().any(|name| name.starts_with(start)), "{start}");
        }
    }
}
