//! The other shards, as elements of the first one reach them.

use std::sync::{Arc, Barrier};

use element::{HandlerError, OtherShards};

use super::worker::{Event, Handle, Worker};

/// The shards behind the first.
pub(super) struct Others {
    pub(super) handles: Vec<Handle>,
    /// Where all shards meet before a new configuration takes over.
    pub(super) barrier: Arc<Barrier>,
}

impl Others {
    /// Makes the same call in each, at the same time.
    fn each<R: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Worker) -> Result<R, HandlerError> + Clone + Send + 'static,
    ) -> Vec<Result<R, HandlerError>> {
        let made: Vec<_> = self.handles.iter().map(|handle| handle.call(call.clone())).collect();
        let ended = |_| Err(HandlerError::new("the shard has ended"));
        made.into_iter().map(|result| result.recv().unwrap_or_else(ended)).collect()
    }
}

impl OtherShards for Others {
    fn read(&self, path: &str, parameter: &str) -> Vec<Result<String, HandlerError>> {
        let (path, parameter) = (path.to_string(), parameter.to_string());
        self.each(move |worker| worker.router.read(&path, &parameter))
    }

    fn write(&self, path: &str, value: &str) -> Result<(), HandlerError> {
        let (path, value) = (path.to_string(), value.to_string());
        self.each(move |worker| worker.router.write(&path, &value)).into_iter().collect()
    }

    fn prepare(&self, text: &str) -> Result<(), HandlerError> {
        let text = text.to_string();
        let prepared: Result<(), HandlerError> =
            self.each(move |worker| worker.prepare(&text)).into_iter().collect();
        if prepared.is_err() {
            self.abort();
        }
        prepared
    }

    fn abort(&self) {
        let _ = self.each(|worker| {
            worker.abort();
            Ok(())
        });
    }

    fn commit(&self) {
        for handle in &self.handles {
            let barrier = self.barrier.clone();
            handle.call(move |worker| {
                // Before the first shard could end, so that the run does not.
                let _ = worker.events.send(Event::Resumed(worker.shard));
                barrier.wait();
                worker.switch();
            });
        }
        self.barrier.wait();
    }
}
