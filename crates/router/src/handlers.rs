//! Handlers by path, and those that every element and the router itself have.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write;

use element::{HandlerError, HandlerInfo, HandlerKind, HandlerTarget, Runtime};

use crate::build::Options;
use crate::core::Core;
use crate::ports::{self, Processing};
use crate::router::ROUTER_VERSION;

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

impl Core {
    /// Finds the element and the handler that a path names, as seen from `from`.
    pub(crate) fn resolve_path(
        &self,
        from: Option<usize>,
        path: &str,
    ) -> Result<HandlerTarget, HandlerError> {
        let Some((name, handler)) = path.split_once('.') else {
            return Ok(HandlerTarget { element: None, handler: path.to_string() });
        };
        if name.is_empty() {
            return Ok(HandlerTarget { element: None, handler: handler.to_string() });
        }
        // Click numbers elements from 1 in this notation.
        let by_number =
            || name.parse::<usize>().ok()?.checked_sub(1).filter(|index| *index < self.nodes.len());
        match self.find_from(from, name).or_else(by_number) {
            Some(element) => Ok(HandlerTarget { element: Some(element), handler: handler.to_string() }),
            None => Err(HandlerError::NoElement(name.to_string())),
        }
    }

    /// The path of a handler from the outermost level.
    fn full_path(&self, target: &HandlerTarget) -> String {
        match target.element.and_then(|element| self.nodes.get(element)) {
            Some(node) => format!("{}.{}", node.name, target.handler),
            None => target.handler.clone(),
        }
    }

    pub(crate) fn read_path(
        &self,
        from: Option<usize>,
        path: &str,
        parameter: &str,
    ) -> Result<String, HandlerError> {
        let target = self.resolve_path(from, path)?;
        let path = &self.full_path(&target);
        let full = |error| with_path(error, path);
        let plain = |answer: Result<String, HandlerError>| match answer {
            Ok(_) if !parameter.is_empty() => Err(HandlerError::NoParameter(path.clone())),
            other => other.map_err(full),
        };
        let Some(index) = target.element else {
            return plain(self.read_global(&target.handler));
        };
        let own = self.call(index, |object, cx| object.read(cx, &target.handler, parameter));
        match own {
            Some(Err(HandlerError::NoHandler(_))) => plain(self.read_standard(index, &target.handler)),
            Some(answer) => answer.map_err(full),
            None => self.read_standard(index, &target.handler).map_err(|error| match error {
                HandlerError::NoHandler(_) => HandlerError::Busy(path.to_string()),
                other => full(other),
            }),
        }
    }

    pub(crate) fn write_path(
        &self,
        from: Option<usize>,
        path: &str,
        value: &str,
    ) -> Result<(), HandlerError> {
        let target = self.resolve_path(from, path)?;
        let path = &self.full_path(&target);
        let full = |error| with_path(error, path);
        let Some(index) = target.element else {
            return self.write_global(&target.handler, value).map_err(full);
        };
        let own = self.call(index, |object, cx| object.write(cx, &target.handler, value));
        match own {
            // One that the element only reads may be a standard one to write: `config`.
            Some(Err(own @ (HandlerError::NoHandler(_) | HandlerError::Wrong { .. }))) => {
                let standard = self.write_standard(index, &target.handler, value);
                standard.map_err(|error| match error {
                    HandlerError::NoHandler(_) => full(own),
                    other => full(other),
                })
            }
            Some(answer) => answer.map_err(full),
            None => Err(HandlerError::Busy(path.to_string())),
        }
    }

    /// The handlers of an element, its own first, or of the router.
    pub(crate) fn list_handlers(&self, element: Option<usize>) -> Vec<HandlerInfo> {
        let Some(index) = element else { return ROUTER.to_vec() };
        let Some(node) = self.nodes.get(index) else { return Vec::new() };
        let mut handlers = node.class.handlers();
        // An element that is being called lists what its class has.
        if let Ok(object) = node.object.try_borrow() {
            handlers.extend(object.iter().flat_map(|object| object.more_handlers()));
        }
        let standard = ELEMENT.iter().chain(if node.class.info.task { TASK } else { &[] });
        for info in standard {
            let refused = info.name == "config" && !is_read(info) && !node.class.live;
            if !refused && !handlers.iter().any(|own| own.name == info.name && is_read(own) == is_read(info))
            {
                handlers.push(info.clone());
            }
        }
        handlers
    }

    fn read_standard(&self, index: usize, handler: &str) -> Result<String, HandlerError> {
        let unknown = || HandlerError::NoHandler(handler.to_string());
        let node = self.nodes.get(index).ok_or_else(unknown)?;
        let counts = |ports: &[crate::node::Port]| {
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
                let _ = writeln!(text, "{reason} {count}");
                text
            }),
            "cycles" if node.class.info.task => {
                let (time, calls) = node.work.get();
                format!("{time} {calls}")
            }
            "scheduled" if node.class.info.task => self.is_scheduled(index).to_string(),
            "tickets" if node.class.info.task => self.tickets(index).to_string(),
            "home_thread" if node.class.info.task => node.thread.get().to_string(),
            _ => {
                let handlers = self.list_handlers(Some(index));
                let written = handlers.iter().any(|info| info.name == handler && !is_read(info));
                return Err(if written { wrong(handler, true) } else { unknown() });
            }
        })
    }

    fn write_standard(&self, index: usize, handler: &str, value: &str) -> Result<(), HandlerError> {
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
            _ => {
                let read = self.list_handlers(Some(index)).iter().any(|info| info.name == handler);
                Err(if read { wrong(handler, false) } else { HandlerError::NoHandler(handler.to_string()) })
            }
        }
    }

    fn read_global(&self, handler: &str) -> Result<String, HandlerError> {
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
            "handlers" => handlers_text(ROUTER),
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
            _ => {
                let written = ROUTER.iter().any(|info| info.name == handler);
                let unknown = HandlerError::NoHandler(handler.to_string());
                return Err(if written { wrong(handler, true) } else { unknown });
            }
        })
    }

    fn write_global(&self, handler: &str, value: &str) -> Result<(), HandlerError> {
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
            _ => {
                let read = ROUTER.iter().any(|info| info.name == handler);
                Err(if read { wrong(handler, false) } else { HandlerError::NoHandler(handler.to_string()) })
            }
        }
    }

    /// Compiles, builds and initialises a successor, which takes over between two turns.
    fn prepare(&self, text: &str) -> Result<(), HandlerError> {
        let is_class = |name: &str| self.registry.has(name);
        let options = click_lang::Options::new("config", &is_class);
        let compiled = click_lang::compile(text, &options);
        let complain = |problems: &[click_lang::Diagnostic]| {
            let text: Vec<String> = problems.iter().map(ToString::to_string).collect();
            HandlerError::Rejected(text.join("\n"))
        };
        if compiled.has_errors() {
            return Err(complain(&compiled.diagnostics));
        }
        let mut graph = compiled.graph;
        graph.elements.extend(self.options.added.iter().cloned());
        let successor = Core::build(
            graph,
            self.registry,
            self.environment.clone(),
            Options {
                source: text.to_string(),
                simulated: self.clock.simulated.get(),
                ..self.options.clone()
            },
            Some(self.pool.clone()),
        );
        let (successor, _): (Box<Core>, _) = successor.map_err(|problems| {
            HandlerError::new(format_args!("{}\nRouter could not be initialized!", complain(&problems)))
        })?;
        *self.successor.borrow_mut() = Some(successor);
        Ok(())
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
                let agnostic = if declared == Processing::Agnostic { "~" } else { "" };
                let _ = writeln!(text, "{push}{agnostic}\t-\t{}", peers.join(", "));
            }
        }
        text
    }
}

fn is_read(info: &HandlerInfo) -> bool {
    info.kind != HandlerKind::Write
}

fn wrong(handler: &str, read: bool) -> HandlerError {
    HandlerError::Wrong { path: handler.to_string(), read }
}

/// Names the whole path where an element named only the handler.
fn with_path(error: HandlerError, path: &str) -> HandlerError {
    match error {
        HandlerError::NoHandler(_) => HandlerError::NoHandler(path.to_string()),
        HandlerError::Wrong { read, .. } => HandlerError::Wrong { path: path.to_string(), read },
        HandlerError::NoParameter(_) => HandlerError::NoParameter(path.to_string()),
        other => other,
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
