//! The state of a running router: the part that elements reach through their context.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use click_lang::{Diagnostic, Graph};
use element::{
    Context, CountingElements, Descriptor, DynElement, HandlerError, Outputs, Reason, Resources, Runtime,
};
use packet::{BatchTrace, Timestamp};

use crate::account::{Account, Totals};
use crate::connection::Connection;
use crate::hooks::{Hook, Hooks};
use crate::node::{Node, Port};
use crate::options::Options;
use crate::own_writes::OwnWrites;
use crate::pace::Pace;
use crate::predecessors::Predecessors;
use crate::preparation::Preparation;
use crate::registry::Registry;
use crate::relays::Relays;
use crate::schedule::Schedule;
use crate::timers::Timers;

/// The state of a running router.
pub(crate) struct RouterState {
    pub(crate) nodes: Vec<Node>,
    pub(crate) counting: Rc<CountingElements>,
    /// The configuration that replaces this one looks at them, while it is prepared.
    pub(crate) hooks: Rc<Hooks>,
    /// Where packets go from the outputs of all elements, in order.
    pub(crate) connections: Vec<Connection>,
    pub(crate) graph: Graph,
    pub(crate) registry: Registry,
    pub(crate) options: Options,
    pub(crate) resources: Resources,
    /// The number of each element. The configuration that replaces this one looks up in it, while it is prepared.
    pub(crate) by_name: Rc<BTreeMap<String, usize>>,
    /// The elements in the order in which they are created and initialised.
    pub(crate) order: Vec<usize>,
    /// Those of them that may have something to do when they are initialised.
    pub(crate) to_initialize: Vec<usize>,
    /// Where elements find the state that they take over.
    pub(crate) predecessors: RefCell<Option<Predecessors>>,
    pub(crate) schedule: RefCell<Schedule>,
    pub(crate) timers: RefCell<Timers>,
    pub(crate) watched: RefCell<BTreeMap<Descriptor, Watchers>>,
    pub(crate) relays: Relays,
    /// Searches for notifiers so far.
    pub(crate) searches: Cell<u64>,
    /// Whether a lookup hit an export of an element that could not be created.
    pub(crate) missed: Cell<bool>,
    pub(crate) turns_left: Cell<usize>,
    /// Whether some element spreads packets over many outputs that gather them; and how often the running task was given
    /// more turns for that.
    pub(crate) is_wide: bool,
    pub(crate) extra_turns: Cell<usize>,
    /// The sources whose turns may be taken together with those of other tasks.
    pub(crate) paces: Vec<Pace>,
    /// The turns that the running source has taken at once, and the task that takes as many after it.
    pub(crate) paced_turns: Cell<usize>,
    pub(crate) following: Cell<usize>,
    /// For a crash report: the element being called, and its batch.
    pub(crate) running: Cell<usize>,
    pub(crate) current_batch: Cell<BatchTrace>,
    /// Memory for the inputs of packets that arrive by several of them.
    pub(crate) mixed_inputs: Cell<Vec<u16>>,
    /// Which writes that change the configuration are noticed now.
    pub(crate) watch: Cell<Watch>,
    pub(crate) own_writes: OwnWrites,
    /// How long packets are still to be moved before the next step of a long write, if there are any.
    pub(crate) owed: Cell<Timestamp>,
    /// Whether this turn has moved packets.
    pub(crate) has_moved: Cell<bool>,
    /// When the last step of a long write ended.
    pub(crate) stepped: Cell<Timestamp>,
    /// When the elements were initialised, in monotonic time.
    pub(crate) started: Cell<Timestamp>,
    /// Whether a turn has run timers.
    pub(crate) has_run_timers: Cell<bool>,
    /// The books of the configurations before.
    pub(crate) past: Account,
    pub(crate) past_totals: Totals,
    /// Spare buffers, one per level of nesting. Each call moves them out and back.
    #[expect(clippy::vec_box, reason = "moving a box is cheaper than moving the buffers")]
    pub(crate) outputs: RefCell<Vec<Box<Outputs>>>,
    /// A checked and initialised router, which takes over at the next opportunity.
    pub(crate) successor: RefCell<Option<Box<RouterState>>>,
    /// A configuration that was written to `hotconfig` and is being prepared in steps.
    pub(crate) preparation: RefCell<Option<Preparation<Result<Created, HandlerError>>>>,
}

/// A configuration whose elements are created.
pub(crate) struct Created {
    pub(crate) state: Box<RouterState>,
    /// Warnings of the compiler.
    pub(crate) warnings: Vec<Diagnostic>,
    /// Warnings of the elements.
    pub(crate) problems: Vec<Diagnostic>,
}

/// Which writes that change the configuration are noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watch {
    /// None: the router is being built, or is not asked to.
    Nothing,
    /// A caller writes a handler: the number of successful writes so far, that of the caller and those that it caused.
    Caller(u32),
    /// Those that elements make on their own.
    Elements,
}

/// No element.
pub(crate) const NO_ELEMENT: usize = usize::MAX;

/// The elements that watch a descriptor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watchers {
    pub(crate) read: Vec<usize>,
    pub(crate) write: Vec<usize>,
}

impl RouterState {
    /// The router as elements see it.
    pub(crate) fn runtime(&self) -> &dyn Runtime {
        self
    }

    #[inline]
    pub(crate) fn input(&self, element: usize, port: usize) -> Option<&Port> {
        self.nodes.get(element)?.inputs.get(port)
    }

    #[inline]
    pub(crate) fn output(&self, element: usize, port: usize) -> Option<&Port> {
        self.nodes.get(element)?.outputs.get(port)
    }

    /// Whether an element stores pushed packets until they are pulled.
    pub(crate) fn is_storage(&self, element: usize) -> bool {
        self.nodes.get(element).is_some_and(|node| node.element.class.storage)
    }

    /// The name of a reason, including reasons that users' functions declared.
    pub(crate) fn reason_name(&self, reason: Reason) -> Cow<'static, str> {
        match self.resources.user_reasons.name(reason) {
            Some(declared) => Cow::Owned(declared.into()),
            None => Cow::Borrowed(reason.name()),
        }
    }

    /// Calls an element and delivers what it emits; `None` if it is already being called.
    pub(crate) fn call<R>(
        &self,
        element: usize,
        run: impl FnOnce(&mut dyn DynElement, &mut Context) -> R,
    ) -> Option<R> {
        let mut outputs = self.take_outputs();
        let result = self.call_with(&mut outputs, element, run);
        self.outputs.borrow_mut().push(outputs);
        result
    }

    /// Calls an element, and notes whether others of its class need the call.
    pub(crate) fn call_hook<R>(
        &self,
        hook: Hook,
        outputs: &mut Outputs,
        element: usize,
        run: impl FnOnce(&mut dyn DynElement, &mut Context) -> R,
    ) -> Option<R> {
        self.resources.is_needless.set(false);
        let result = self.call_with(outputs, element, run);
        if self.resources.is_needless.take() {
            self.hooks.note_needless(element, hook);
        }
        result
    }

    /// Like [`call`](Self::call), with buffers that serve many calls.
    #[inline]
    pub(crate) fn call_with<R>(
        &self,
        outputs: &mut Outputs,
        element: usize,
        run: impl FnOnce(&mut dyn DynElement, &mut Context) -> R,
    ) -> Option<R> {
        let node = self.nodes.get(element)?;
        let mut guard = node.object.try_borrow_mut().ok()?;
        let object = guard.as_mut()?;
        let caller = self.running.replace(element);
        let result = run(object.as_mut(), &mut Context::new(self, &self.resources, &node.element, outputs));
        drop(guard);
        // Deferred writes of the call precede the delivery of its packets.
        self.write_deferred();
        // A pull emits nothing, as a rule.
        if !outputs.is_empty() {
            self.deliver(outputs);
        }
        self.running.set(caller);
        Some(result)
    }

    pub(crate) fn take_outputs(&self) -> Box<Outputs> {
        let most = self.batch();
        let mut outputs = self.outputs.borrow_mut().pop().unwrap_or_else(|| Box::new(Outputs::new(most)));
        outputs.set_limit(most);
        outputs
    }

    /// The maximum number of packets in a batch at present.
    #[inline]
    pub(crate) fn batch(&self) -> usize {
        self.options.batch.min(self.resources.batch_limits.least())
    }

    /// Notifies woken elements and performs deferred writes, as far as the elements involved are not being called.
    pub(crate) fn run_deferred(&self) {
        self.write_deferred();
        loop {
            let Some(element) = self.resources.deferred.take_woken() else { return };
            self.call(element, |object, cx| object.woken(cx));
            self.write_deferred();
        }
    }

    /// Performs deferred writes in order, up to the first whose element is being called.
    #[inline]
    pub(crate) fn write_deferred(&self) {
        if self.resources.deferred.has_writes() {
            self.write_all_deferred();
        }
    }

    #[cold]
    fn write_all_deferred(&self) {
        loop {
            let Some(write) = self.resources.deferred.take_write() else { return };
            match self.write_path(Some(write.from), &write.path, &write.value) {
                Ok(()) => {}
                Err(HandlerError::Busy(_)) => {
                    self.resources.deferred.put_back(write);
                    return;
                }
                Err(error) => self.resources.log(&error.of_call(false)),
            }
        }
    }

    /// The index of the element called `name`, as seen from the compound elements that contain `from`.
    pub(crate) fn find_from(&self, from: Option<usize>, name: &str) -> Option<usize> {
        let mut scope = from.and_then(|from| self.nodes.get(from)).map_or("", |node| &node.element.name);
        while let Some((outer, _)) = scope.rsplit_once('/') {
            scope = outer;
            let mut path = String::with_capacity(scope.len() + 1 + name.len());
            path.push_str(scope);
            path.push('/');
            path.push_str(name);
            if let Some(found) = self.by_name.get(&path) {
                return Some(*found);
            }
        }
        self.by_name.get(name).copied()
    }

    /// Whether nothing more can happen without an external event.
    pub(crate) fn is_idle(&self) -> bool {
        self.schedule.borrow().is_idle() && self.successor.borrow().is_none()
    }

    /// Whether all timers that are set only keep the state of their elements up to date.
    pub(crate) fn has_only_upkeep(&self) -> bool {
        let is_upkeep =
            |element: usize| self.nodes.get(element).is_some_and(|node| node.element.class.upkeep);
        self.timers.borrow().elements().all(is_upkeep)
    }

    /// What is watched while no caller writes.
    pub(crate) fn watch_between_calls(&self) -> Watch {
        if self.options.report_writes { Watch::Elements } else { Watch::Nothing }
    }
}
