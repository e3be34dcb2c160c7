//! What a router does for its elements.
//!
//! These are traits because elements and the router that runs them are compiled apart, and only the router knows the
//! graph. What needs no graph is a concrete type: [`Resources`](crate::Resources), [`ElementState`].

use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::any::Any;

use packet::{Batch, Timestamp};

use crate::element_state::ElementState;
use crate::environment::Descriptor;
use crate::error::HandlerError;
use crate::handler_info::HandlerInfo;
use crate::outputs::Outputs;
use crate::signal::{Direction, Signal};

/// A handler's location: element and handler name, resolved relative to the requester.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerTarget {
    /// The element's index; `None` for the router itself.
    pub element: Option<usize>,
    /// The handler's name.
    pub handler: String,
}

/// The longest time for which a write in steps keeps packets waiting. The last step may exceed it by some ten microseconds.
pub const WRITE_STEP: Timestamp = Timestamp::from_micros(100);

/// The router, as an element sees it through [`Context`](crate::Context). Elements are identified by index.
pub trait Runtime: Ports + Scheduler + Signals + Handlers + Elements {}

impl<R: Ports + Scheduler + Signals + Handlers + Elements> Runtime for R {}

/// Moves packets between the ports of elements.
pub trait Ports {
    /// Whether packets are pushed to the input.
    fn is_push_input(&self, element: usize, port: usize) -> bool;
    /// Whether the output pushes.
    fn is_push_output(&self, element: usize, port: usize) -> bool;
    /// Whether no packet can end between a pull input and the queues that feed it, so that one pull brings the same as several.
    fn passes_pulls_whole(&self, element: usize, port: usize) -> bool;
    /// Whether each packet that leaves a source or a queue is pushed to the element at most once, before the next batch leaves it.
    fn gets_each_packet_once(&self, element: usize) -> bool;
    /// Pulls at most `most` packets from an input and appends them to `into`.
    fn pull(&self, element: usize, port: usize, most: usize, into: &mut Batch);
    /// Pulls packets one by one from an input and appends them to `into`, until a pull returns none or `goes_on` returns false.
    fn pull_while(
        &self,
        element: usize,
        port: usize,
        into: &mut Batch,
        goes_on: &mut dyn FnMut(&mut Batch) -> bool,
    );
    /// Delivers the batches that an element has emitted.
    fn deliver(&self, element: usize, outputs: &mut Outputs);
    /// Forwards pulls at an output to an input without calling the element.
    fn forward_pulls(&self, element: usize, output: usize, input: Option<usize>);
}

/// Calls elements later: by their task, at a time, or when a descriptor is ready.
pub trait Scheduler {
    /// Puts the task on the run queue.
    fn schedule(&self, element: usize);
    /// Takes the task off the run queue.
    fn unschedule(&self, element: usize);
    /// Whether the task is on the run queue.
    fn is_scheduled(&self, element: usize) -> bool;
    /// The task's tickets: its share of the CPU.
    fn tickets(&self, element: usize) -> u32;
    /// Sets the task's tickets.
    fn set_tickets(&self, element: usize, tickets: u32);
    /// How many consecutive turns the task may take at once: 1 unless it is the only task.
    fn take_turns(&self, element: usize) -> usize;
    /// The same for a source that sends at most one packet a turn: several also if other tasks take these from queues.
    fn take_paced_turns(&self, element: usize) -> usize;
    /// Further turns that the only task may take in the same call, after what it has emitted so far is delivered; 0 if there is
    /// no use in that, or something else has to run first.
    fn more_turns(&self, element: usize, outputs: &mut Outputs) -> usize;
    /// Sets a timer to a point of steady time.
    fn set_timer(&self, element: usize, timer: usize, at: Timestamp);
    /// Sets a timer to expire at `at`, the end of a span that begins now.
    fn start_timer(&self, element: usize, timer: usize, at: Timestamp);
    /// Cancels a timer.
    fn clear_timer(&self, element: usize, timer: usize);
    /// When a timer expires, if it is set.
    fn timer(&self, element: usize, timer: usize) -> Option<Timestamp>;
    /// Requests a call when the descriptor can be read or written; with neither, cancels the request.
    fn watch(&self, element: usize, descriptor: Descriptor, read: bool, write: bool);
}

/// Signals along the packet paths, on which tasks sleep.
pub trait Signals {
    /// Sets whether listeners downstream (`Empty`) or upstream (`Full`) should try.
    fn set_signal(&self, element: usize, direction: Direction, active: bool);
    /// Finds the notifiers upstream of an input (`Empty`) or downstream of an output (`Full`) and listens to them.
    fn signal(&self, element: usize, port: usize, direction: Direction) -> Signal;
    /// The notifiers of such a signal, in Click's notation.
    fn describe_signal(&self, element: usize, port: usize, direction: Direction) -> String;
}

/// Calls handlers of elements and of the router.
pub trait Handlers {
    /// Reads a handler; the path is resolved relative to `from`.
    fn read_handler(&self, from: usize, path: &str, parameter: &str) -> Result<String, HandlerError>;
    /// Writes a handler at once; fails if its element is being called.
    fn write_handler(&self, from: usize, path: &str, value: &str) -> Result<(), HandlerError>;
    /// Begins a write that may take steps. Returns where, if it has not been executed at once: then `continue_write` must be
    /// called between batches until it returns a result.
    fn begin_write(
        &self,
        from: usize,
        path: &str,
        value: String,
    ) -> Result<Option<HandlerTarget>, HandlerError>;
    /// Continues a write that has begun, for at most [`WRITE_STEP`]. Returns its result when it is done.
    fn continue_write(&self, target: &HandlerTarget) -> Option<Result<(), HandlerError>>;
    /// Reads a handler of all shards as one value, or that of one shard.
    fn read_shards(
        &self,
        from: usize,
        path: &str,
        parameter: &str,
        shard: Option<u32>,
    ) -> Result<String, HandlerError>;
    /// Writes a handler in all shards.
    fn write_shards(&self, from: usize, path: &str, value: &str) -> Result<(), HandlerError>;
    /// Resolves a handler path relative to `from`.
    fn resolve(&self, from: usize, path: &str) -> Result<HandlerTarget, HandlerError>;
    /// Whether an element, or with `None` the router, has a handler of this name. This makes no list.
    fn has_handler(&self, element: Option<usize>, name: &str) -> bool;
    /// The handlers of an element, or with `None` of the router.
    fn handlers(&self, element: Option<usize>) -> Vec<HandlerInfo>;
}

/// Finds elements of the graph.
pub trait Elements {
    /// The number of elements.
    fn element_count(&self) -> usize;
    /// What the router knows about an element.
    fn element(&self, element: usize) -> Option<&ElementState>;
    /// Where the configuration declares an element: `FILE:LINE`.
    fn location(&self, element: usize) -> String;
    /// Looks up an element by name, as seen from `from`.
    fn find(&self, from: usize, name: &str) -> Option<usize>;
    /// The object that an element exports, unless it is being called.
    fn export(&self, element: usize) -> Option<Rc<dyn Any>>;
    /// Elements reachable from an output (or that reach an input) without passing storage, nearest first.
    fn neighbours(&self, element: usize, port: Option<usize>, downstream: bool) -> Vec<usize>;
    /// Whether packets enter a queue only straight from output 0 of an element, or leave it only straight to input 0 of an
    /// element that pulls, and none comes back to the first of the two from the second.
    fn is_sole_neighbour(&self, element: usize, queue: usize) -> bool;
}

impl dyn Runtime + '_ {
    /// The name of an element; empty if the index is unknown.
    pub fn element_name(&self, element: usize) -> &str {
        self.element(element).map_or("", |element| &element.name)
    }

    /// The class name of an element; empty if the index is unknown.
    pub fn class_name(&self, element: usize) -> &'static str {
        self.element(element).map_or("", |element| element.class_name())
    }

    /// Restarts every element's own random sequence from one seed.
    pub fn reseed(&self, seed: u64) {
        for element in (0..self.element_count()).filter_map(|index| self.element(index)) {
            element.random.restart(seed, element.index);
        }
    }
}
