//! The main function of a box image: an engine with the classes of the image.
//!
//! [`image!`] defines it. The built-in image has all classes of the element library; an image of a user has the user's
//! classes, and those of the library that it names.
//!
//! Absent: the boot code, which is in `boot`, and element classes.
#![no_std]

extern crate alloc;

mod report;

use alloc::boxed::Box;
use alloc::rc::Rc;
use boot::GuestPlatform;
use core::error::Error;
use element::Class;
use engine::{Engine, EngineError};
use router::Registry;

pub use boot::Boot;

/// Defines the program of an image: `image!(CLASSES)`, or `image!(CLASSES, CONFIGURATION)`, where an empty configuration of
/// a box stands for this one.
#[macro_export]
macro_rules! image {
    ($classes:expr) => {
        $crate::image!($classes, "");
    };
    ($classes:expr, $configuration:expr) => {
        // The boot code calls it.
        #[unsafe(no_mangle)]
        fn run(boot: $crate::Boot) -> ! {
            $crate::run(boot, $classes, $configuration)
        }
    };
}

/// Runs configurations of these classes until the host stops the box.
pub fn run(boot: Boot, classes: &'static [&'static [Class]], configuration: &'static str) -> ! {
    let engine = Engine::new(&boot.info, boot.region, Rc::new(GuestPlatform), Registry::new(classes));
    let engine = match engine {
        Ok(engine) => Box::leak(Box::new(engine)),
        Err(error) => fail(error),
    };
    engine.set_default_configuration(configuration);
    report::watch(engine);
    match engine.run() {
        Ok(()) => boot::stop(),
        Err(error) => fail(error),
    }
}

/// Ends the box with an error and its cause.
fn fail(error: EngineError) -> ! {
    match error.source() {
        Some(cause) => panic!("{error}: {cause}"),
        None => panic!("{error}"),
    }
}
