//! Settings of a daemon.

use crate::symbols::SymbolFile;
use std::path::PathBuf;

/// Settings of a daemon.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The image that boxes run.
    pub image: &'static [u8],
    /// The image's name, for display.
    pub image_name: String,
    /// The symbols of the image, which crash reports use.
    pub symbols: Option<SymbolFile>,
    /// The file that stores definitions; its folder must exist. `None`: definitions are kept in memory and lost when
    /// the daemon ends.
    pub store: Option<PathBuf>,
    /// Threads that run virtual machines. 0: one per processor, except one that the switches use.
    pub workers: usize,
    /// Maximum 4 KB pages of the store. `None`: as many as the disk holds.
    pub store_pages: Option<u32>,
}

impl Settings {
    /// Default settings: automatic number of workers, and a store in memory.
    pub fn new(image: &'static [u8], image_name: impl Into<String>) -> Self {
        Self {
            image,
            image_name: image_name.into(),
            symbols: None,
            store: None,
            workers: 0,
            store_pages: None,
        }
    }
}
