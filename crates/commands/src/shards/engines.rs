//! The shards of a configuration together: built, started, read and ended by the thread that controls them.

use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use click_lang::{Diagnostic, Graph};
use element::{HandlerError, OtherShards, Shard};
use router::{Merge, Options, RunEnd};

use super::others::Others;
use super::worker::{Event, Handle, Worker};
use crate::configuration;
use crate::environment::{self, Outputs, ProcessEnvironment, ShardLink, Waker};
use crate::snapshot::Snapshot;

/// The most shards of a configuration. Each has a thread and a packet pool.
pub(crate) const MAX_SHARDS: u32 = 64;

/// What shards run.
pub(crate) struct Plan {
    pub(crate) graph: Graph,
    pub(crate) options: Options,
    /// Captures in memory, by the name that the configuration reads them by: the bytes for each shard.
    pub(crate) captures: Vec<(String, Vec<Arc<[u8]>>)>,
}

/// Engines with the warnings about their configuration, or all diagnostics if it has errors.
pub(crate) type Built = Result<(Engines, Vec<Diagnostic>), Vec<Diagnostic>>;

/// Engines that run one configuration.
pub(crate) struct Engines {
    handles: Vec<Handle>,
    threads: Vec<JoinHandle<()>>,
    events: Receiver<Event>,
    outputs: Arc<Outputs>,
    /// Why each shard does not run.
    ends: Vec<Option<RunEnd>>,
    /// When the last shard stopped.
    ended: Instant,
    /// The CPU time of the busiest shard.
    busy: Duration,
}

impl Engines {
    /// Builds the engines.
    pub(crate) fn build(count: u32, plan: &Plan) -> std::io::Result<Built> {
        let (sender, events) = channel();
        let barrier = Arc::new(Barrier::new(count as usize));
        let outputs = Arc::new(Outputs::default());
        let mut handles = Vec::new();
        let mut starting = Vec::new();
        for _ in 0..count {
            let waker = Arc::new(Waker::new()?);
            let (handle, calls) = Handle::new(waker.clone());
            handles.push(handle);
            starting.push((waker, calls));
        }
        let mut threads = Vec::new();
        for (index, (waker, calls)) in (0..count).zip(starting) {
            let shard = Shard { index, count };
            let others = (index == 0 && count > 1).then(|| Others {
                handles: handles.iter().skip(1).cloned().collect(),
                barrier: barrier.clone(),
            });
            let own = |(name, parts): &(String, Vec<Arc<[u8]>>)| {
                Some((name.clone(), parts.get(index as usize)?.clone()))
            };
            let captures = plan.captures.iter().filter_map(own).collect();
            let link = ShardLink { shard, waker: waker.clone(), outputs: outputs.clone(), captures };
            let (graph, events) = (plan.graph.clone(), sender.clone());
            let options = Options { shard, ..plan.options.clone() };
            let run = move || {
                let others = others.map(|others| Box::new(others) as Box<dyn OtherShards>);
                let environment = Rc::new(ProcessEnvironment::of_shard(link, others));
                let (report, worker) = match configuration::router(graph, environment.clone(), options) {
                    Ok(router) => (
                        Ok(router.warnings().to_vec()),
                        Some(Worker::new(router, environment, index, events.clone())),
                    ),
                    Err(problems) => (Err(problems), None),
                };
                // The controlling thread waits for this.
                let _ = events.send(Event::Built(index, report));
                if let Some(mut worker) = worker {
                    worker.serve(&waker, &calls);
                }
            };
            threads.push(std::thread::Builder::new().name(format!("shard{index}")).spawn(run)?);
        }
        drop(sender);
        let ends = vec![None; count as usize];
        let mut engines =
            Engines { handles, threads, events, outputs, ends, ended: Instant::now(), busy: Duration::ZERO };
        let mut warnings = Vec::new();
        let mut problems: Option<(u32, Vec<Diagnostic>)> = None;
        for _ in 0..count {
            match engines.events.recv() {
                Ok(Event::Built(0, Ok(found))) => warnings = found,
                // Shards find the same errors, so those of the first are shown.
                Ok(Event::Built(index, Err(found)))
                    if problems.as_ref().is_none_or(|(known, _)| index < *known) =>
                {
                    problems = Some((index, found));
                }
                _ => {}
            }
        }
        Ok(match problems {
            None => Ok((engines, warnings)),
            Some((_, problems)) => {
                engines.end_threads();
                environment::remove_parts(&engines.outputs, count);
                Err(problems)
            }
        })
    }

    /// Starts all shards; returns when.
    pub(crate) fn start(&self) -> Instant {
        let started = Instant::now();
        self.handles.iter().for_each(|handle| drop(handle.call(Worker::start)));
        started
    }

    /// Waits until all shards have stopped, for at most this time. Returns why the first of them did.
    pub(crate) fn wait(&mut self, time: Duration) -> Option<RunEnd> {
        let until = Instant::now() + time;
        loop {
            if let Some(ends) = self.ends.iter().copied().collect::<Option<Vec<RunEnd>>>() {
                let interrupted = ends.iter().copied().find(|end| *end == RunEnd::Interrupted);
                return interrupted.or(ends.first().copied());
            }
            match self.events.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Event::Ended(shard, end, at, busy)) => {
                    self.set_end(shard, Some(end));
                    self.ended = self.ended.max(at);
                    self.busy = self.busy.max(busy);
                }
                Ok(Event::Resumed(shard)) => self.set_end(shard, None),
                Ok(Event::Built(..)) => {}
                Err(RecvTimeoutError::Timeout) => return None,
                Err(RecvTimeoutError::Disconnected) => return Some(RunEnd::Interrupted),
            }
        }
    }

    fn set_end(&mut self, shard: u32, end: Option<RunEnd>) {
        if let Some(known) = self.ends.get_mut(shard as usize) {
            *known = end;
        }
    }

    /// When the last shard stopped.
    pub(crate) fn ended(&self) -> Instant {
        self.ended
    }

    /// The CPU time of the busiest shard.
    pub(crate) fn busy(&self) -> Duration {
        self.busy
    }

    /// Stops all shards. Their counters stay.
    pub(crate) fn stop(&self) {
        self.each(|worker| worker.stop(RunEnd::Paused));
    }

    /// The counters of all shards.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut sum = Snapshot::default();
        self.each(|worker| Snapshot::of(&worker.router)).into_iter().for_each(|shard| sum.add(shard));
        sum
    }

    /// The progress of reading files: bytes read and total bytes.
    pub(crate) fn progress(&self) -> (u64, u64) {
        let shards = self.each(|worker| worker.environment.progress());
        shards.into_iter().fold((0, 0), |(read, all), (more, of)| (read + more, all + of))
    }

    /// Reads a handler of all shards, or with a path that begins with `shard1/` of one.
    pub(crate) fn read(&self, path: &str) -> Result<String, HandlerError> {
        let count = u32::try_from(self.handles.len()).unwrap_or(1);
        let first = path.to_string();
        let whole = self.handles.first().map(|handle| handle.call(move |worker| worker.router.merge(&first)));
        let merge = whole.and_then(|merge| merge.recv().ok()).unwrap_or(Ok(Merge::Same));
        let (shard, rest) = match merge {
            // An element in a compound element of that name comes first.
            Ok(_) if path.contains('.') => (None, path),
            _ => Shard { index: 0, count }.strip_prefix(path),
        };
        let rest = rest.to_string();
        let answers = self.each(move |worker| worker.router.read(&rest, ""));
        match shard {
            Some(shard) => answers.into_iter().nth(shard as usize).unwrap_or_else(|| Ok(String::new())),
            None => Ok(merge?.answer(&answers.into_iter().collect::<Result<Vec<String>, HandlerError>>()?)),
        }
    }

    /// Ends all shards, and puts the files that they wrote together. Returns each file that could not be, with the cause.
    pub(crate) fn finish(&mut self) -> Vec<String> {
        let count = u32::try_from(self.handles.len()).unwrap_or(1);
        self.end_threads();
        let join =
            |path: &String| environment::join(path, count).err().map(|error| format!("{path}: {error}"));
        self.outputs.take().iter().filter_map(join).collect()
    }

    /// Ends the threads, in which the elements are cleaned up.
    fn end_threads(&mut self) {
        self.each(|worker| worker.quits = true);
        for thread in self.threads.drain(..) {
            // A thread that panicked has printed why.
            let _ = thread.join();
        }
    }

    /// Makes the same call in each shard, at the same time; the results are in order.
    fn each<R: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Worker) -> R + Clone + Send + 'static,
    ) -> Vec<R> {
        let made: Vec<_> = self.handles.iter().map(|handle| handle.call(call.clone())).collect();
        made.into_iter().filter_map(|result| result.recv().ok()).collect()
    }
}
