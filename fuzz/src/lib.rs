//! Code that the fuzz targets share: the in-memory environment of the element library's tests, the hostile peers of the
//! tests of `boundary`, `fabric`, `flow-table`, `openflow` and `switch`, and texts with a part to repeat.

#[path = "../../crates/elements/tests/support/mod.rs"]
mod support;

#[path = "../../crates/fabric/tests/hostile/agent.rs"]
pub mod agent;
#[path = "../../crates/flow-table/tests/hostile/key.rs"]
pub mod flow_key;
#[allow(dead_code, reason = "the hostile peers use a part of it")]
#[path = "../../crates/switch/tests/vhost_user/front_end.rs"]
mod front_end;
#[path = "../../crates/fabric/tests/hostile/function.rs"]
pub mod function;
#[path = "../../crates/switch/tests/hostile/function.rs"]
pub mod function_region;
#[path = "../../crates/switch/tests/hostile/link.rs"]
pub mod link;
#[path = "../../crates/boundary/tests/hostile/mailbox.rs"]
pub mod mailbox;
#[path = "../../crates/switch/tests/hostile/memif.rs"]
pub mod memif;
#[path = "../../crates/switch/tests/hostile/memif_peer.rs"]
pub mod memif_peer;
#[path = "../../crates/boundary/tests/hostile/memory.rs"]
mod memory;
#[path = "../../crates/openflow/tests/hostile/session.rs"]
pub mod openflow_session;
#[path = "../../crates/switch/tests/hostile/overlay.rs"]
pub mod overlay;
#[path = "../../crates/boundary/tests/hostile/pages.rs"]
pub mod pages;
#[path = "../../crates/boundary/tests/hostile/ring.rs"]
pub mod ring;
#[path = "../../crates/switch/tests/hostile/source_guard.rs"]
pub mod source_guard;
#[path = "../../crates/switch/tests/hostile/vhost_user.rs"]
pub mod vhost_user;

pub mod control;
pub mod flow_state;
pub mod repetition;

use std::rc::Rc;

use support::{BATCHES, Memory};

/// Runs a configuration, at a batch size that `choice` picks; what it says is of no interest, only that it ends.
pub fn run(config: &str, choice: u8, files: &[(&str, &[u8])]) {
    let memory = Rc::new(Memory::default());
    for (name, bytes) in files {
        memory.put(name, bytes);
    }
    let batch = BATCHES[usize::from(choice) % BATCHES.len()];
    // A run that is refused has been judged too.
    let _ = support::run_with(config, batch, memory);
}

/// An environment that has nothing.
pub struct Nowhere;

impl element::Environment for Nowhere {
    fn now(&self) -> packet::Timestamp {
        packet::Timestamp::ZERO
    }

    fn steady(&self) -> packet::Timestamp {
        packet::Timestamp::ZERO
    }

    fn seed(&self) -> u64 {
        1
    }

    fn console(&self, _: &str) {}

    fn wait(
        &self,
        _: &[(element::Descriptor, bool, bool)],
        _: Option<packet::Timestamp>,
    ) -> Vec<element::Descriptor> {
        Vec::new()
    }
}
