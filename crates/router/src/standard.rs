//! The standard handlers of elements and of the router.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write;

use element::{HandlerError, HandlerInfo, HandlerKind, Scheduler, WriteEffect};

use crate::ports::{self, PortMode};
use crate::router::ROUTER_VERSION;
use crate::state::RouterState;

/// A standard handler of every element, of every element with a task, or of the router: its reference entry and its
/// implementation.
pub(crate) struct StandardHandler<T: 'static> {
    pub(crate) info: HandlerInfo,
    call: Call<T>,
}

/// The implementation of a standard handler. `T` is the element's index, or `()` for a handler of the router.
enum Call<T> {
    Read(fn(&RouterState, T) -> String),
    Write(fn(&RouterState, T, &str) -> Result<(), HandlerError>),
}

const fn read<T>(
    name: &'static str,
    summary: &'static str,
    call: fn(&RouterState, T) -> String,
) -> StandardHandler<T> {
    let kind = HandlerKind::Read;
    let effect = WriteEffect::Action;
    let info = HandlerInfo { name: Cow::Borrowed(name), kind, effect, calm: true, hidden: false, summary };
    StandardHandler { info, call: Call::Read(call) }
}

const fn write<T>(
    name: &'static str,
    summary: &'static str,
    effect: WriteEffect,
    call: fn(&RouterState, T, &str) -> Result<(), HandlerError>,
) -> StandardHandler<T> {
    let kind = HandlerKind::Write;
    let info = HandlerInfo { name: Cow::Borrowed(name), kind, effect, calm: false, hidden: false, summary };
    StandardHandler { info, call: Call::Write(call) }
}

/// Handlers of every element.
pub(crate) static ELEMENT: &[StandardHandler<usize>] = &[
    read("name", "The element's name.", |state, element| state.runtime().element_name(element).to_string()),
    read("class", "The element's class.", |state, element| state.runtime().class_name(element).to_string()),
    read("config", "The element's configuration.", |state, element| {
        state.nodes.get(element).map_or_else(String::new, |node| node.element.config().clone())
    }),
    write(
        "config",
        "Changes the configuration while the element runs, if it can.",
        WriteEffect::Setting,
        RouterState::reconfigure,
    ),
    read("ports", "The ports, and what each is connected to.", RouterState::ports_text),
    read(
        "handlers",
        "The handlers: a name and r, w or rw a line; `s` or `e` behind w if a write sets or edits the configuration.",
        |state, element| handlers_text(&state.list_handlers(Some(element))),
    ),
    read("icounts", "Packets that came in, a line for each input.", |state, element| {
        counts(state.nodes.get(element).map(|node| state.packets_in(node)))
    }),
    read("ocounts", "Packets that went out, a line for each output.", |state, element| {
        counts(state.nodes.get(element).map(|node| state.packets_out(node)))
    }),
    read("losses", "Packets that the element lost: a reason and a count a line.", RouterState::losses_text),
    read(
        "fates",
        "Packets that began, ended or wait here: a fate and a count a line; `oldest` is the longest wait in seconds.",
        RouterState::fates_text,
    ),
];

/// Handlers of every element that has a task.
pub(crate) static TASK: &[StandardHandler<usize>] = &[
    read("cycles", "Nanoseconds that the task took, and how often it ran.", |state, element| {
        let (time, calls) = state.nodes.get(element).map_or((0, 0), |node| node.work.get());
        format!("{time} {calls}")
    }),
    read("scheduled", "Whether the task is on the run queue.", |state, element| {
        state.is_scheduled(element).to_string()
    }),
    write(
        "scheduled",
        "Puts the task on the run queue, or takes it off.",
        WriteEffect::Action,
        |state, element, value| {
            match value.trim() {
                "1" | "true" | "yes" | "" => state.schedule(element),
                "0" | "false" | "no" => state.unschedule(element),
                _ => return Err(HandlerError::new("syntax error")),
            }
            Ok(())
        },
    ),
    read("tickets", "The task's tickets: its share of the turns.", |state, element| {
        state.tickets(element).to_string()
    }),
    write("tickets", "Sets the task's tickets.", WriteEffect::Setting, |state, element, value| {
        let tickets = value.trim().parse().map_err(|_| HandlerError::new("syntax error"))?;
        state.set_tickets(element, tickets);
        Ok(())
    }),
    read("home_thread", "The thread that the task is assigned to.", |state, element| {
        state.nodes.get(element).map_or(0, |node| node.element.thread.get()).to_string()
    }),
];

/// Handlers of the router.
pub(crate) static ROUTER: &[StandardHandler<()>] = &[
    read(
        "account",
        "Packets that began, ended or wait in the configuration: a fate and a count a line.",
        |state, ()| state.account().text(),
    ),
    read(
        "accounts",
        "The account of each element a line, tab-separated: name, class, packets in, begun, out, discarded, delivered, \
         consumed, waiting, and lost as REASON=COUNT.",
        |state, ()| state.accounts_text(),
    ),
    read("classes", "The classes that the registry has, one a line.", |state, ()| {
        lines(state.registry.classes().map(|class| class.info.name.to_string()))
    }),
    read("config", "The configuration as it was given.", |state, ()| state.source()),
    read(
        "discards",
        "Packets that were discarded: a count and the connection that led there a line.",
        |state, ()| state.discards_text(),
    ),
    read("driver", "The kind of driver.", |_, ()| "userlevel".to_string()),
    read("flatconfig", "The configuration without compound elements.", |state, ()| {
        click_lang::flatten(&state.changed_graph())
    }),
    read(
        "forms",
        "The forms in which elements keep large tables, and their sizes: an element and its handler `form` a line.",
        |state, ()| state.forms_text(),
    ),
    read("handlers", "The handlers of the router.", |state, ()| handlers_text(&state.list_handlers(None))),
    read("list", "The number of elements, then their names.", |state, ()| {
        format!("{}\n", state.nodes.len()) + &lines(state.nodes.iter().map(|node| node.element.name.clone()))
    }),
    read("packages", "Packages that were loaded: none.", |_, ()| String::new()),
    read("requirements", "What the configuration requires.", |state, ()| {
        let both =
            |requirement: &click_lang::Requirement| [requirement.kind.clone(), requirement.value.clone()];
        lines(state.graph.requirements.iter().flat_map(both))
    }),
    read(
        "timewarp",
        "How fast time goes: a factor, `nowait` if it is not waited for, or `simulation`.",
        |state, ()| state.resources.clock.warp_text(),
    ),
    read(
        "waiting",
        "Packets that wait: a count, the age of the oldest in seconds and the element a line.",
        |state, ()| state.waiting_text(),
    ),
    read("version", "The version of Click that is spoken.", |_, ()| ROUTER_VERSION.to_string()),
    write(
        "hotconfig",
        "Takes a new configuration and carries the state over, or leaves all as it is.",
        WriteEffect::Setting,
        |state, (), value| state.prepare(value),
    ),
    write(
        "timewarp",
        "Makes time go that much faster, or with `nowait` jump to what happens next.",
        WriteEffect::Setting,
        |state, (), value| state.set_time_warp(value),
    ),
    write(
        "stop",
        "Takes the given number, or 1, off the driver's count.",
        WriteEffect::Action,
        |state, (), value| {
            state.resources.driver.stop(value.trim().parse().unwrap_or(1));
            Ok(())
        },
    ),
];

/// One line for each text.
fn lines(texts: impl Iterator<Item = String>) -> String {
    texts.fold(String::new(), |text, line| text + &line + "\n")
}

/// The packet counts of the ports, one line per port.
fn counts(ports: Option<impl Iterator<Item = u64>>) -> String {
    lines(ports.into_iter().flatten().map(|count| count.to_string()))
}

impl RouterState {
    /// The elements with a handler `form`, each with its value.
    fn forms_text(&self) -> String {
        let form = |node: &crate::node::Node| {
            let has_form = node.class.handlers().iter().any(|info| info.name == "form" && info.is_read());
            let path = format!("{}.form", node.element.name);
            has_form.then(|| self.read_path(None, &path, "")).and_then(Result::ok)
        };
        let forms = self.nodes.iter().filter_map(|node| Some((&node.element.name, form(node)?)));
        lines(forms.map(|(name, form)| format!("{name}: {form}")))
    }

    /// The standard handlers of an element that exist in this configuration.
    pub(crate) fn element_handlers(
        &self,
        element: usize,
    ) -> impl Iterator<Item = &'static StandardHandler<usize>> {
        let class = self.nodes.get(element).map(|node| node.class);
        let (task, live) = class.map_or((false, false), |class| (class.info.task, class.live_reconfigure));
        let exists = move |handler: &&StandardHandler<usize>| {
            live || handler.info.name != "config" || handler.info.is_read()
        };
        ELEMENT.iter().chain(if task { TASK } else { &[] }).filter(exists)
    }

    /// The handlers of the router that exist in this configuration.
    pub(crate) fn router_handlers(&self) -> impl Iterator<Item = &'static StandardHandler<()>> {
        let has_hotconfig = self.options.allow_reconfigure;
        ROUTER.iter().filter(move |handler| has_hotconfig || handler.info.name != "hotconfig")
    }

    pub(crate) fn read_standard(&self, index: usize, handler: &str) -> Result<String, HandlerError> {
        call_read(self.element_handlers(index), handler, self, index)
            .unwrap_or_else(|| Err(refusal(&self.list_handlers(Some(index)), handler, true)))
    }

    pub(crate) fn write_standard(
        &self,
        index: usize,
        handler: &str,
        value: &str,
    ) -> Result<(), HandlerError> {
        call_write(self.element_handlers(index), handler, self, index, value)
            .unwrap_or_else(|| Err(refusal(&self.list_handlers(Some(index)), handler, false)))
    }

    pub(crate) fn read_global(&self, handler: &str) -> Result<String, HandlerError> {
        call_read(self.router_handlers(), handler, self, ())
            .unwrap_or_else(|| Err(refusal(&self.list_handlers(None), handler, true)))
    }

    pub(crate) fn write_global(&self, handler: &str, value: &str) -> Result<(), HandlerError> {
        call_write(self.router_handlers(), handler, self, (), value)
            .unwrap_or_else(|| Err(refusal(&self.list_handlers(None), handler, false)))
    }

    fn losses_text(&self, index: usize) -> String {
        let mut text = String::new();
        if let Some(node) = self.nodes.get(index) {
            node.element.drops.for_each(|reason, count| {
                let _ = writeln!(text, "{} {count}", self.reason_name(reason));
            });
        }
        text
    }

    fn set_time_warp(&self, value: &str) -> Result<(), HandlerError> {
        if self.resources.clock.simulated().is_some() {
            return Err(HandlerError::WrongKind { path: "timewarp".to_string(), read: false });
        }
        let speed = match value.trim() {
            "nowait" => None,
            text => match text.parse::<f64>() {
                Ok(speed) if speed > 0.0 && speed.is_finite() => Some(speed),
                Ok(_) => return Err(HandlerError::new("timefactor must be > 0")),
                Err(_) => return Err(HandlerError::new("expected double")),
            },
        };
        self.resources.clock.set_warp(
            speed.unwrap_or(1.0),
            speed.is_none(),
            self.resources.environment.as_ref(),
        );
        Ok(())
    }

    fn source(&self) -> String {
        let compact = self.graph.requirements.iter().any(|requirement| requirement.kind == "compact_config");
        if compact { click_lang::flatten(&self.changed_graph()) } else { self.options.source.clone() }
    }

    /// The graph, with current argument values.
    fn changed_graph(&self) -> click_lang::Graph {
        let mut graph = self.graph.clone();
        for (element, node) in graph.elements.iter_mut().zip(&self.nodes) {
            element.config.clone_from(&node.element.config());
        }
        graph
    }

    fn ports_text(&self, index: usize) -> String {
        let Some(node) = self.nodes.get(index) else { return String::new() };
        let mut text = String::new();
        let counts = (node.inputs.len(), node.outputs.len());
        let (inputs, outputs) = ports::processing(node.element.class.processing, counts);
        for (kind, ports, declared, input) in
            [("input", &node.inputs, inputs, true), ("output", &node.outputs, outputs, false)]
        {
            let plural = if ports.len() == 1 { "" } else { "s" };
            let _ = writeln!(text, "{} {kind}{plural}", ports.len());
            for (port, declared) in ports.iter().zip(declared) {
                let push = if port.links.push { "push" } else { "pull" };
                let peers: Vec<String> = port
                    .links
                    .peers
                    .iter()
                    .filter_map(|(peer, number)| {
                        let name = &self.nodes.get(*peer)?.element.name;
                        Some(if input { format!("{name} [{number}]") } else { format!("[{number}] {name}") })
                    })
                    .collect();
                // The middle column holds counts, which Click maintains only if it was built with them.
                let agnostic = if declared == PortMode::Agnostic { "~" } else { "" };
                let _ = writeln!(text, "{push}{agnostic}\t-\t{}", peers.join(", "));
            }
        }
        text
    }
}

/// Calls the read handler of a name; `None` if there is none.
fn call_read<T: Copy + 'static>(
    mut handlers: impl Iterator<Item = &'static StandardHandler<T>>,
    name: &str,
    state: &RouterState,
    target: T,
) -> Option<Result<String, HandlerError>> {
    handlers.find_map(|handler| match &handler.call {
        Call::Read(call) if handler.info.name == name => Some(Ok(call(state, target))),
        _ => None,
    })
}

/// Calls the write handler of a name; `None` if there is none.
fn call_write<T: Copy + 'static>(
    mut handlers: impl Iterator<Item = &'static StandardHandler<T>>,
    name: &str,
    state: &RouterState,
    target: T,
    value: &str,
) -> Option<Result<(), HandlerError>> {
    handlers.find_map(|handler| match &handler.call {
        Call::Write(call) if handler.info.name == name => Some(call(state, target, value)),
        _ => None,
    })
}

/// The error for a handler that can't be read or written: it has only the other kind, or it does not exist.
fn refusal(handlers: &[HandlerInfo], handler: &str, read: bool) -> HandlerError {
    match handlers.iter().any(|info| info.name == handler && !(read && info.is_read())) {
        true => HandlerError::WrongKind { path: handler.to_string(), read },
        false => HandlerError::NoHandler(handler.to_string()),
    }
}

/// One line per name, `count` TAB `r`, in the format of Click's `handlers` handlers. Behind `w` stands what a write changes,
/// if it changes the configuration: `s` for a setting, `e` for an edit.
fn handlers_text(handlers: &[HandlerInfo]) -> String {
    let mut names: Vec<&str> = handlers.iter().map(|info| &*info.name).collect();
    sorting::sort(&mut names);
    names.dedup();
    names.iter().fold(String::new(), |mut text, name| {
        let is_read = handlers.iter().any(|info| info.name == *name && info.is_read());
        let parameter =
            handlers.iter().any(|info| info.name == *name && info.kind == HandlerKind::ReadWithParameter);
        let writes = handlers.iter().find(|info| info.name == *name && !info.is_read());
        let _ = writeln!(
            text,
            "{name}\t{}{}{}",
            if is_read { "r" } else { "" },
            writes.map_or("", |info| match info.effect {
                WriteEffect::Action => "w",
                WriteEffect::Setting => "ws",
                WriteEffect::Edit => "we",
            }),
            if parameter { "+" } else { "" }
        );
        text
    })
}
