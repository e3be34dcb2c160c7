//! Writes that the next installation of a configuration executes before its first packet.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use boundary::RefusedWrite;
use boundary::limits::MAX_PREPARED_WRITES;
use router::Router;

/// Writes that wait, and those that failed.
#[derive(Default)]
pub(crate) struct PreparedWrites {
    waiting: Vec<Prepared>,
    refused: Vec<RefusedWrite>,
}

struct Prepared {
    configuration: String,
    handler: String,
    value: String,
}

impl PreparedWrites {
    /// Keeps a write. Returns whether there was room.
    pub(crate) fn add(&mut self, configuration: &str, handler: &str, value: &str) -> bool {
        let has_room = self.waiting.len() < MAX_PREPARED_WRITES;
        if has_room {
            let (configuration, handler) = (configuration.into(), handler.into());
            self.waiting.push(Prepared { configuration, handler, value: value.into() });
        }
        has_room
    }

    /// Executes the writes of a configuration that was just installed.
    pub(crate) fn execute(&mut self, configuration: &str, router: &mut Router) {
        self.refused.clear();
        let ours = self.waiting.extract_if(.., |prepared| prepared.configuration == configuration);
        for (number, prepared) in (0..).zip(ours) {
            if let Err(error) = router.write(&prepared.handler, &prepared.value) {
                self.refused.push(RefusedWrite { number, reason: error.to_string() });
            }
        }
    }

    /// Takes the failures of the last installation, and forgets what was not executed.
    pub(crate) fn take_refused(&mut self) -> Vec<RefusedWrite> {
        self.waiting.clear();
        core::mem::take(&mut self.refused)
    }
}
