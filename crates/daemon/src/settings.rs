//! What a daemon is started with.

use std::path::PathBuf;

/// What a daemon is started with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The image that boxes run.
    pub image: &'static [u8],
    /// What the image is called.
    pub image_name: String,
    /// The file in which definitions are kept, in a folder that exists; none: in memory, gone with the daemon.
    pub store: Option<PathBuf>,
    /// Threads that run virtual machines; 0: one for each processor but one, which the switches have.
    pub workers: usize,
    /// The most pages of 4 KB that the store may have; none: as many as the disk takes.
    pub store_pages: Option<u32>,
}

impl Settings {
    /// A daemon with a worker for each processor and a store in memory.
    pub fn new(image: &'static [u8], image_name: impl Into<String>) -> Self {
        Self { image, image_name: image_name.into(), store: None, workers: 0, store_pages: None }
    }
}
