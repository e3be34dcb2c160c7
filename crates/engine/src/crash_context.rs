//! What the engine contributes to a crash report: the configuration, the element and the packets.

use crate::engine::Engine;
use boundary::limits::MAX_CRASH_NAME;
use packet::BatchTrace;

/// What was running when the program failed.
#[derive(Clone, Copy, Debug)]
pub struct CrashContext {
    name: [u8; MAX_CRASH_NAME],
    length: usize,
    /// The batch that was last passed on.
    pub batch: BatchTrace,
}

impl CrashContext {
    /// `configuration:element`, or `element` in the main configuration; cut to the limit of a report.
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
    /// What is running now. It allocates nothing and changes nothing, so it can be called after a fault in the middle
    /// of any call of [`run`](Self::run).
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
