//! What a crash report says of the engine: which configuration, which element, which packets.

use crate::engine::Engine;
use boundary::limits::MAX_CRASH_NAME;
use packet::BatchTrace;

/// What ran when nothing could go on.
#[derive(Clone, Copy, Debug)]
pub struct CrashContext {
    name: [u8; MAX_CRASH_NAME],
    length: usize,
    /// The batch that was handed on last.
    pub batch: BatchTrace,
}

impl CrashContext {
    /// `configuration:element`, or `element` in the main configuration; cut to what a report holds.
    pub fn name(&self) -> &[u8] {
        self.name.get(..self.length).unwrap_or_default()
    }

    fn add(&mut self, text: &str) {
        for (to, from) in self.name.iter_mut().skip(self.length).zip(text.as_bytes()) {
            *to = *from;
            self.length += 1;
        }
    }
}

impl Engine {
    /// What runs now. It takes no memory and changes nothing, and so may be asked after a fault in the middle of any
    /// call of [`run`](Self::run).
    pub fn crash_context(&self) -> Option<CrashContext> {
        let mut crash_context =
            CrashContext { name: [0; MAX_CRASH_NAME], length: 0, batch: BatchTrace::EMPTY };
        let mut running = self.configurations.iter().filter_map(|it| Some((&it.name, it.router.running()?)));
        let (configuration, (element, batch)) = running.next()?;
        if !configuration.is_empty() {
            crash_context.add(configuration);
            crash_context.add(":");
        }
        crash_context.add(element);
        crash_context.batch = batch;
        Some(crash_context)
    }
}
