//! Which images are stored, and which are held.

use api::ImageDigest;
use std::collections::{BTreeMap, BTreeSet};

/// The images of a daemon.
#[derive(Debug, Default)]
pub(super) struct ImageTable {
    pub(super) stored: BTreeSet<ImageDigest>,
    /// How many requests hold an image.
    pub(super) held: BTreeMap<ImageDigest, usize>,
}

impl ImageTable {
    pub(super) fn new(stored: Vec<ImageDigest>) -> Self {
        Self { stored: stored.into_iter().collect(), held: BTreeMap::new() }
    }
}
