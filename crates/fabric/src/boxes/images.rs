//! The images that users gave, each loaded once for all boxes that run it.

use crate::error::OperationError;
use crate::limits::MAX_IMAGES;
use model::ImageDigest;
use sandbox::{HostError, LoadedImage};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The loaded images.
#[derive(Debug, Default)]
pub(super) struct Images(Mutex<BTreeMap<ImageDigest, Arc<LoadedImage>>>);

impl Images {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ImageDigest, Arc<LoadedImage>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an image, unless it is there.
    pub(super) fn load(
        &self,
        digest: ImageDigest,
        load: impl FnOnce() -> Result<Arc<LoadedImage>, HostError>,
    ) -> Result<(), OperationError> {
        let is_new = {
            let images = self.lock();
            if images.len() >= MAX_IMAGES {
                return Err(OperationError::Limit("images", MAX_IMAGES));
            }
            !images.contains_key(&digest)
        };
        if is_new {
            // Without the lock: boxes start meanwhile.
            let loaded = load().map_err(OperationError::Image)?;
            self.lock().entry(digest).or_insert(loaded);
        }
        Ok(())
    }

    /// An image.
    pub(super) fn get(&self, digest: &ImageDigest) -> Result<Arc<LoadedImage>, OperationError> {
        self.lock().get(digest).cloned().ok_or(OperationError::NoImage(*digest))
    }

    /// Removes an image. Boxes that run it go on.
    pub(super) fn forget(&self, digest: &ImageDigest) {
        self.lock().remove(digest);
    }

    /// The digests of all images.
    pub(super) fn digests(&self) -> Vec<ImageDigest> {
        self.lock().keys().copied().collect()
    }
}
