//! The `clickbox` program: commands, element library and box images, put together.
//!
//! Its tests run the program as a user does, and check the rules of the whole project.
//!
//! Absent: everything else. A change of an element or of the engine rebuilds the image and this file, not the commands.

use std::process::ExitCode;

use commands::Components;

fn main() -> ExitCode {
    commands::main(Components {
        classes: elements::REGISTRY,
        documentation: elements::DOCUMENTATION,
        box_image: image::CLICKBOX,
        box_image_fingerprint: image::CLICKBOX_FINGERPRINT,
        probe_image: image::PROBE,
    })
}
