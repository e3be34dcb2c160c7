//! Images that users gave, each once, by its digest.

use super::error::StoreError;
use super::schema::Store;
use api::ImageDigest;
use rusqlite::OptionalExtension;

/// Where definitions of boxes with images are. A digest occurs in no definition by chance. What is staged or set aside
/// counts, because it may become a box again.
const USES: &str = "
    EXISTS (SELECT 1 FROM boxes WHERE instr(definition, ?1))
    OR EXISTS (SELECT 1 FROM unconfirmed WHERE instr(before, ?1))
    OR EXISTS (SELECT 1 FROM set_aside_boxes WHERE instr(definition, ?1))
    OR EXISTS (SELECT 1 FROM set_aside_unconfirmed WHERE instr(before, ?1))";

impl Store {
    /// The digests of all images.
    pub(crate) fn image_digests(&self) -> Result<Vec<ImageDigest>, StoreError> {
        let mut query = self.connection.prepare("SELECT digest FROM images")?;
        let texts = query.query_map([], |row| row.get::<_, String>(0))?;
        Ok(texts.flatten().filter_map(|text| text.parse().ok()).collect())
    }

    /// An image.
    pub(crate) fn image(&self, digest: &ImageDigest) -> Result<Option<Vec<u8>>, StoreError> {
        let query = "SELECT contents FROM images WHERE digest = ?1";
        Ok(self.connection.query_row(query, [digest.to_string()], |row| row.get(0)).optional()?)
    }

    /// Adds an image. It is on the disk with the commit of the box that uses it.
    pub(crate) fn add_image(&mut self, digest: &ImageDigest, contents: &[u8]) -> Result<(), StoreError> {
        let digest = digest.to_string();
        self.change_unsynced(|connection| {
            let order = "INSERT OR REPLACE INTO images (digest, contents) VALUES (?1, ?2)";
            connection.execute(order, (&digest, contents))?;
            Ok(())
        })
    }

    /// Removes an image, unless a definition names it. Returns whether it is gone.
    pub(crate) fn remove_unused_image(&mut self, digest: &ImageDigest) -> Result<bool, StoreError> {
        let digest = digest.to_string();
        let is_used = format!("SELECT {USES}");
        // The row has megabytes: without a use, the write-ahead log is not touched.
        if self.connection.prepare_cached(&is_used)?.query_row([&digest], |row| row.get(0))? {
            return Ok(false);
        }
        self.change_unsynced(|connection| {
            connection.execute("DELETE FROM images WHERE digest = ?1", [&digest])?;
            Ok(true)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Action, StoreChange, StoredBox, StoredConfiguration};
    use api::{BoxName, ConfigurationName, CreateBox, ImageSource, Stack, Time};

    #[test]
    fn an_image_is_stored_as_long_as_a_definition_names_it() {
        let mut store = Store::open(None, None).unwrap();
        let [used, unused] = [1, 2].map(|byte| ImageDigest([byte; 32]));
        for digest in [&used, &unused] {
            store.add_image(digest, &digest.0).unwrap();
        }
        assert_eq!(store.image_digests().unwrap(), [used, unused]);
        let name: BoxName = "scrub".parse().unwrap();
        let image = Some(ImageSource::Digest(used));
        let definition = CreateBox { image, ..CreateBox::new(name.clone(), "") };
        let stored =
            StoredBox { definition: definition.clone(), stack: None, created: Time::now(), running: true };
        let main = StoredConfiguration {
            id: 0,
            name: ConfigurationName::main(),
            source: None,
            installed: Time::now(),
            swaps: 0,
            text: String::new(),
        };
        // A box that is being created keeps it, and so does a stack that may be rolled back.
        let operation = store.begin(Action::Create, &"box/scrub".parse().unwrap()).unwrap();
        store.stage_box(operation, stored, main, Vec::new()).unwrap();
        assert!(!store.remove_unused_image(&used).unwrap() && store.remove_unused_image(&unused).unwrap());
        store.commit(operation).unwrap();
        assert!(!store.remove_unused_image(&used).unwrap());
        let before = Some(Stack { boxes: vec![definition], ..Stack::default() });
        let stack = crate::store::StoredUnconfirmed { name: "edge".parse().unwrap(), before };
        store.apply(&[StoreChange::PutUnconfirmed(stack), StoreChange::RemoveBox(name)]).unwrap();
        assert!(!store.remove_unused_image(&used).unwrap());
        assert_eq!(store.image(&used).unwrap(), Some(vec![1; 32]));
        store.apply(&[StoreChange::RemoveUnconfirmed("edge".parse().unwrap())]).unwrap();
        assert!(store.remove_unused_image(&used).unwrap());
        assert_eq!((store.image(&used).unwrap(), store.image_digests().unwrap()), (None, Vec::new()));
    }
}
