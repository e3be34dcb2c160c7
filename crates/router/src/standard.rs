//! The handlers that every element and the router itself have.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write;

use element::{HandlerError, HandlerInfo, HandlerKind, Runtime};

use crate::handlers::is_read;
use crate::node::Port;
use crate::ports::{self, PortMode};
use crate::router::ROUTER_VERSION;
use crate::state::RouterState;

const fn read(name: &'static str, summary: &'static str) -> HandlerInfo {
    HandlerInfo { name: Cow::Borrowed(name), kind: HandlerKind::Read, calm: true, hidden: false, summary }
}

const fn write(name: &'static str, summary: &'static str) -> HandlerInfo {
    HandlerInfo { name: Cow::Borrowed(name), kind: HandlerKind::Write, calm: false, hidden: false, summary }
}

/// Handlers of every element.
pub(crate) const ELEMENT: &[HandlerInfo] = &[
    read("name", "The element's name."),
    read("class", "The element's class."),
    read("config", "The element's configuration."),
    write("config", "Changes the configuration while the element runs, if it can."),
    read("ports", "The ports, and what each is connected to."),
    read("handlers", "The handlers: a name and r, w or rw a line."),
    read("icounts", "Packets that came in, a line for each input."),
    read("ocounts", "Packets that went out, a line for each output."),
    read("losses", "Packets that the element lost: a reason and a count a line."),
];

/// Handlers of every element that has a task.
pub(crate) const TASK: &[HandlerInfo] = &[
    read("cycles", "Nanoseconds that the task took, and how often it ran."),
    read("scheduled", "Whether the task is on the run queue."),
    write("scheduled", "Puts the task on the run queue, or takes it off."),
    read("tickets", "The task's tickets: its share of the turns."),
    write("tickets", "Sets the task's tickets."),
    read("home_thread", "The thread that the task is assigned to."),
];

/// Handlers of the router.
pub(crate) const ROUTER: &[HandlerInfo] = &[
    read("classes", "The classes that the registry has, one a line."),
    read("config", "The configuration as it was given."),
    read("driver", "The kind of driver."),
    read("flatconfig", "The configuration without compound elements."),
    read("handlers", "The handlers of the router."),
    read("list", "The number of elements, then their names."),
    read("packages", "Packages that were loaded: none."),
    read("requirements", "What the configuration requires."),
    read("timewarp", "How fast time goes: a factor, `nowait` if it is not waited for, or `simulation`."),
    read("version", "The version of Click that is spoken."),
    write("hotconfig", "Takes a new configuration and carries the state over, or leaves all as it is."),
    write("timewarp", "Makes time go that much faster, or with `nowait` jump to what happens next."),
    write("stop", "Takes the given number, or 1, off the driver's count."),
];

impl RouterState {
    pub(crate) fn read_standard(&self, index: usize, handler: &str) -> Result<String, HandlerError> {
        let unknown = || HandlerError::NoHandler(handler.to_string());
        let node = self.nodes.get(index).ok_or_else(unknown)?;
        let counts = |ports: &[Port]| {
            ports.iter().fold(String::new(), |mut text, port| {
                let _ = writeln!(text, "{}", port.count.get());
                text
            })
        };
        Ok(match handler {
            "name" => node.name.clone(),
            "class" => node.class.info.name.to_string(),
            "config" => node.config.borrow().clone(),
            "ports" => self.ports_text(index),
            "handlers" => handlers_text(&self.list_handlers(Some(index))),
            "icounts" => counts(&node.inputs),
            "ocounts" => counts(&node.outputs),
            "losses" => node.drops.borrow().iter().fold(String::new(), |mut text, (reason, count)| {
                let _ = writeln!(text, "{} {count}", self.reason_name(*reason));
                text
            }),
            "cycles" if node.class.info.task => {
                let (time, calls) = node.work.get();
                format!("{time} {calls}")
            }
            "scheduled" if node.class.info.task => self.is_scheduled(index).to_string(),
            "tickets" if node.class.info.task => self.tickets(index).to_string(),
            "home_thread" if node.class.info.task => node.thread.get().to_string(),
            _ => return Err(refusal(&self.list_handlers(Some(index)), handler, true)),
        })
    }

    pub(crate) fn write_standard(
        &self,
        index: usize,
        handler: &str,
        value: &str,
    ) -> Result<(), HandlerError> {
        let task = self.nodes.get(index).is_some_and(|node| node.class.info.task);
        match handler {
            "config" if self.nodes.get(index).is_some_and(|node| node.class.live) => {
                self.reconfigure(index, value)
            }
            "scheduled" if task => {
                match value.trim() {
                    "1" | "true" | "yes" | "" => self.schedule(index),
                    "0" | "false" | "no" => self.unschedule(index),
                    _ => return Err(HandlerError::new("syntax error")),
                }
                Ok(())
            }
            "tickets" if task => {
                let tickets = value.trim().parse().map_err(|_| HandlerError::new("syntax error"))?;
                self.set_tickets(index, tickets);
                Ok(())
            }
            _ => Err(refusal(&self.list_handlers(Some(index)), handler, false)),
        }
    }

    pub(crate) fn read_global(&self, handler: &str) -> Result<String, HandlerError> {
        let lines = |lines: &mut dyn Iterator<Item = String>| {
            lines.fold(String::new(), |text, line| text + &line + "\n")
        };
        Ok(match handler {
            "version" => ROUTER_VERSION.to_string(),
            "driver" => "userlevel".to_string(),
            "packages" => String::new(),
            "classes" => lines(&mut self.registry.classes().map(|class| class.info.name.to_string())),
            "config" => self.source(),
            "flatconfig" => click_lang::flatten(&self.changed_graph()),
            "handlers" => handlers_text(&self.list_handlers(None)),
            "list" => {
                format!("{}\n", self.nodes.len())
                    + &lines(&mut self.nodes.iter().map(|node| node.name.clone()))
            }
            "timewarp" => self.clock.pace(),
            "requirements" => {
                let both = |requirement: &click_lang::Requirement| {
                    [requirement.kind.clone(), requirement.value.clone()]
                };
                lines(&mut self.graph.requirements.iter().flat_map(both))
            }
            _ => return Err(refusal(&self.list_handlers(None), handler, true)),
        })
    }

    pub(crate) fn write_global(&self, handler: &str, value: &str) -> Result<(), HandlerError> {
        match handler {
            "stop" => {
                self.stop(value.trim().parse().unwrap_or(1));
                Ok(())
            }
            "timewarp" if self.clock.simulated.get().is_none() => {
                let speed = match value.trim() {
                    "nowait" => None,
                    text => match text.parse::<f64>() {
                        Ok(speed) if speed > 0.0 && speed.is_finite() => Some(speed),
                        Ok(_) => return Err(HandlerError::new("timefactor must be > 0")),
                        Err(_) => return Err(HandlerError::new("expected double")),
                    },
                };
                self.clock.set_pace(speed.unwrap_or(1.0), speed.is_none(), self.environment.as_ref());
                Ok(())
            }
            "hotconfig" if self.options.allow_reconfigure => self.prepare(value),
            _ => Err(refusal(&self.list_handlers(None), handler, false)),
        }
    }

    fn source(&self) -> String {
        let compact = self.graph.requirements.iter().any(|requirement| requirement.kind == "compact_config");
        if compact { click_lang::flatten(&self.changed_graph()) } else { self.options.source.clone() }
    }

    /// The graph, with arguments that were changed since as they are now.
    fn changed_graph(&self) -> click_lang::Graph {
        let mut graph = self.graph.clone();
        for (element, node) in graph.elements.iter_mut().zip(&self.nodes) {
            element.config.clone_from(&node.config.borrow());
        }
        graph
    }

    fn ports_text(&self, index: usize) -> String {
        let Some(node) = self.nodes.get(index) else { return String::new() };
        let mut text = String::new();
        let counts = (node.inputs.len(), node.outputs.len());
        let (inputs, outputs) = ports::processing(node.class.info.processing, counts);
        for (kind, ports, declared, input) in
            [("input", &node.inputs, inputs, true), ("output", &node.outputs, outputs, false)]
        {
            let plural = if ports.len() == 1 { "" } else { "s" };
            let _ = writeln!(text, "{} {kind}{plural}", ports.len());
            for (port, declared) in ports.iter().zip(declared) {
                let push = if port.end.push { "push" } else { "pull" };
                let peers: Vec<String> = port
                    .end
                    .peers
                    .iter()
                    .filter_map(|(peer, number)| {
                        let name = &self.nodes.get(*peer)?.name;
                        Some(if input { format!("{name} [{number}]") } else { format!("[{number}] {name}") })
                    })
                    .collect();
                // The middle column is for counts, which Click keeps only when it was built to.
                let agnostic = if declared == PortMode::Agnostic { "~" } else { "" };
                let _ = writeln!(text, "{push}{agnostic}\t-\t{}", peers.join(", "));
            }
        }
        text
    }
}

/// Why nobody can read, or write, a handler: of these that is only there to write, or to read, or it is not there.
fn refusal(handlers: &[HandlerInfo], handler: &str, read: bool) -> HandlerError {
    match handlers.iter().any(|info| info.name == handler && !(read && is_read(info))) {
        true => HandlerError::Wrong { path: handler.to_string(), read },
        false => HandlerError::NoHandler(handler.to_string()),
    }
}

/// A line for each name, `count` TAB `r`, as Click's `handlers` handlers print.
fn handlers_text(handlers: &[HandlerInfo]) -> String {
    let mut names: Vec<&str> = handlers.iter().map(|info| &*info.name).collect();
    names.sort_unstable();
    names.dedup();
    names.iter().fold(String::new(), |mut text, name| {
        let has = |read| handlers.iter().any(|info| info.name == *name && is_read(info) == read);
        let parameter =
            handlers.iter().any(|info| info.name == *name && info.kind == HandlerKind::ReadWithParameter);
        let _ = writeln!(
            text,
            "{name}\t{}{}{}",
            if has(true) { "r" } else { "" },
            if has(false) { "w" } else { "" },
            if parameter { "+" } else { "" }
        );
        text
    })
}
