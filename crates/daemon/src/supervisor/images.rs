//! Images that users give: each is stored once, and loaded once into each fabric whose boxes run it.
//!
//! An image is removed some time after the last box that runs it. A request that uses an image holds it meanwhile.

use super::image_table::ImageTable;
use super::managed_box::ManagedBox;
use super::state::Supervisor;
use crate::error::OperationError;
use crate::fabric::FabricLink;
use crate::limits::{MAX_IMAGES, MAX_IMAGES_OF_OWNER};
use api::ImageDigest;
use protocol::fabric::{FabricError, orders};
use protocol::memory_file;
use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

/// An image that a request uses, and that is stored as long as this exists.
#[derive(Debug)]
pub(crate) struct HeldImage {
    supervisor: Supervisor,
    digest: ImageDigest,
}

impl HeldImage {
    /// Its digest.
    pub(crate) fn digest(&self) -> ImageDigest {
        self.digest
    }
}

impl Drop for HeldImage {
    fn drop(&mut self) {
        let mut images = self.supervisor.0.images();
        if let Some(count) = images.held.get_mut(&self.digest) {
            *count -= 1;
            if *count == 0 {
                images.held.remove(&self.digest);
            }
        }
    }
}

fn digest_of(managed: &Arc<ManagedBox>) -> Option<ImageDigest> {
    managed.inner().definition.image_digest().copied()
}

impl Supervisor {
    fn hold(&self, images: &mut ImageTable, digest: ImageDigest) -> HeldImage {
        *images.held.entry(digest).or_default() += 1;
        HeldImage { supervisor: self.clone(), digest }
    }

    /// Stores an image, unless it is stored already. The fabric checks it before a box runs it.
    pub(crate) fn add_image(&self, contents: &[u8]) -> Result<HeldImage, OperationError> {
        let mut digest = ImageDigest([0; 32]);
        let hash = ring::digest::digest(&ring::digest::SHA256, contents);
        digest.0.iter_mut().zip(hash.as_ref()).for_each(|(to, from)| *to = *from);
        let mut images = self.0.images();
        if !images.stored.contains(&digest) {
            if images.stored.len() >= MAX_IMAGES {
                return Err(OperationError::Limit("images", MAX_IMAGES));
            }
            self.check_images_of_owner()?;
            self.0.store().add_image(&digest, contents)?;
            images.stored.insert(digest);
        }
        Ok(self.hold(&mut images, digest))
    }

    /// Returns an error if the boxes of the caller have as many images as they may.
    fn check_images_of_owner(&self) -> Result<(), OperationError> {
        if self.is_administrator() || self.own_images().len() < MAX_IMAGES_OF_OWNER {
            return Ok(());
        }
        Err(OperationError::Limit("images of one owner", MAX_IMAGES_OF_OWNER))
    }

    /// The images of the boxes that the caller may see.
    fn own_images(&self) -> BTreeSet<ImageDigest> {
        let boxes = self.0.all();
        let own = boxes.iter().filter(|managed| self.sees(&managed.inner().definition.owner));
        sorting::collect(own.filter_map(digest_of))
    }

    /// An image that is stored already. For the caller there are only images that its boxes run.
    pub(crate) fn hold_image(&self, digest: ImageDigest) -> Result<HeldImage, OperationError> {
        let mut images = self.0.images();
        let is_visible = self.is_administrator() || self.own_images().contains(&digest);
        match images.stored.contains(&digest) && is_visible {
            true => Ok(self.hold(&mut images, digest)),
            false => Err(OperationError::NoImage(digest)),
        }
    }

    /// The contents of an image that the caller may see.
    pub(crate) fn image(&self, digest: ImageDigest) -> Result<Vec<u8>, OperationError> {
        let _held = self.hold_image(digest)?;
        self.0.store().image(&digest)?.ok_or(OperationError::NoImage(digest))
    }

    /// Loads the image of a box into a fabric, unless it is there.
    pub(super) fn load_image(
        &self,
        link: &FabricLink,
        digest: Option<&ImageDigest>,
    ) -> Result<(), OperationError> {
        let Some(image) = digest.copied() else { return Ok(()) };
        match link.ask(orders::LoadImage { image, bytes: 0 }) {
            Err(OperationError::Fabric(FabricError::NoImage(_))) => {}
            other => return other,
        }
        let contents = self.0.store().image(&image)?.ok_or(OperationError::NoImage(image))?;
        let file = memory_file::create(&contents).map_err(|error| {
            OperationError::system("pass an image to the fabric", io::Error::other(error))
        })?;
        link.ask_with(orders::LoadImage { image, bytes: contents.len() as u64 }, &[file.as_fd()]).map(drop)
    }

    /// Has a fabric forget the images that none of its boxes has.
    pub(super) fn forget_strange_images(&self, link: &FabricLink, there: Vec<ImageDigest>) {
        let images = self.0.images();
        for image in there.into_iter().filter(|image| !images.stored.contains(image)) {
            // A fabric that has ended has no images.
            let _ = link.ask_now(orders::ForgetImage { image });
        }
    }

    /// Removes the images that no box runs, no request holds and no stored definition names.
    pub(super) fn remove_unused_images(&self) {
        let mut images = self.0.images();
        if images.stored.is_empty() {
            return;
        }
        let used: BTreeSet<ImageDigest> = sorting::collect(self.0.all().iter().filter_map(digest_of));
        let is_unused = |image: &&ImageDigest| !images.held.contains_key(image) && !used.contains(image);
        let unused: Vec<ImageDigest> = images.stored.iter().filter(is_unused).copied().collect();
        for image in unused {
            // If it fails, for example because the disk is full, the next round tries again.
            if self.0.store().remove_unused_image(&image).unwrap_or(false) {
                images.stored.remove(&image);
                for link in self.0.fabrics.all() {
                    // As above.
                    let _ = link.ask_now(orders::ForgetImage { image });
                }
            }
        }
    }
}
