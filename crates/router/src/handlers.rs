//! Handler lookup by path: an element's own handlers first, then the standard ones.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use element::{HandlerError, HandlerInfo, HandlerTarget, WriteEffect};

use crate::node::Node;
use crate::standard::StandardHandler;
use crate::state::{RouterState, Watch};

impl RouterState {
    /// Finds the element and the handler name of a path, as seen from `from`.
    pub(crate) fn resolve_path(
        &self,
        from: Option<usize>,
        path: &str,
    ) -> Result<HandlerTarget, HandlerError> {
        let root = |handler: &str| HandlerTarget { element: None, handler: handler.to_string() };
        let found = match path.split_once('.') {
            Some(("", handler)) => return Ok(root(handler)),
            Some((_, "")) => return Err(HandlerError::new("syntax error")),
            None if path.is_empty() => return Err(HandlerError::new("syntax error")),
            // Click numbers elements from 1 in this notation.
            Some((name, handler)) => {
                let by_number =
                    || name.parse::<usize>().ok()?.checked_sub(1).filter(|index| *index < self.nodes.len());
                self.find_from(from, name).or_else(by_number).map(|element| (element, handler))
            }
            None => None,
        };
        if let Some((element, handler)) = found {
            return Ok(HandlerTarget { element: Some(element), handler: handler.to_string() });
        }
        // An element can call its own handlers without a path.
        if from.is_some() && self.has_handler(from, path) {
            return Ok(HandlerTarget { element: from, handler: path.to_string() });
        }
        match path.split_once('.') {
            Some((name, _)) if !self.has_handler(None, path) => {
                Err(HandlerError::NoElement(name.to_string()))
            }
            _ => Ok(root(path)),
        }
    }

    /// The path of a handler from the top level.
    pub(crate) fn full_path(&self, target: &HandlerTarget) -> String {
        match target.element.and_then(|element| self.nodes.get(element)) {
            Some(node) => format!("{}.{}", node.element.name, target.handler),
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
        let watch = self.watch.get();
        let before = self.recordings(&target);
        self.write_target(&target, path, value)?;
        match watch {
            Watch::Nothing => {}
            Watch::Caller(_) if self.effect_of(&target) == WriteEffect::Action => {}
            // Writes that this one caused were counted meanwhile.
            Watch::Caller(_) => {
                if let Watch::Caller(count) = self.watch.get() {
                    self.watch.set(Watch::Caller(count.saturating_add(1)));
                }
            }
            Watch::Elements => {
                let facts = || (self.effect_of(&target), self.shows_state(&target));
                self.own_writes.add((path, value), &facts, self.recordings(&target) != before);
            }
        }
        Ok(())
    }

    /// How often `config` of the element of a handler was given another value.
    pub(crate) fn recordings(&self, target: &HandlerTarget) -> u32 {
        self.node_of(target).map_or(0, |node| node.element.recordings())
    }

    /// Whether `config` of the element of a handler always shows the present state.
    pub(crate) fn shows_state(&self, target: &HandlerTarget) -> bool {
        let is_own = |info: &HandlerInfo| info.name == "config" && info.is_read();
        self.node_of(target).is_some_and(|node| node.class.handlers().iter().any(is_own))
    }

    fn node_of(&self, target: &HandlerTarget) -> Option<&Node> {
        self.nodes.get(target.element?)
    }

    /// What writes to a handler change.
    #[inline(never)]
    pub(crate) fn effect_of(&self, target: &HandlerTarget) -> WriteEffect {
        let handlers = self.list_handlers(target.element);
        let found = handlers.iter().find(|info| info.name == target.handler && !info.is_read());
        found.map_or(WriteEffect::Action, |info| info.effect)
    }

    fn write_target(&self, target: &HandlerTarget, path: &str, value: &str) -> Result<(), HandlerError> {
        let full = |error| with_path(error, path);
        let Some(index) = target.element else {
            return self.write_global(&target.handler, value).map_err(full);
        };
        let own = self.call(index, |object, cx| object.write(cx, &target.handler, value));
        match own {
            // An element may have only the read handler of a standard read-write pair: `config`.
            Some(Err(own @ (HandlerError::NoHandler(_) | HandlerError::WrongKind { .. }))) => {
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

    /// Whether [`list_handlers`](Self::list_handlers) has a handler of this name.
    pub(crate) fn has_handler(&self, element: Option<usize>, name: &str) -> bool {
        let Some(index) = element else {
            return self.router_handlers().any(|handler| handler.info.name == name);
        };
        let Some(node) = self.nodes.get(index) else { return false };
        let is_one_more = || {
            let object = node.object.try_borrow();
            let more =
                object.iter().flat_map(|object| object.iter()).flat_map(|object| object.more_handlers());
            more.into_iter().any(|info| info.name == name)
        };
        node.class.has_handler(name)
            || self.element_handlers(index).any(|handler| handler.info.name == name)
            || is_one_more()
    }

    /// The handlers of an element, its own first, or of the router.
    pub(crate) fn list_handlers(&self, element: Option<usize>) -> Vec<HandlerInfo> {
        let Some(index) = element else {
            return self.router_handlers().map(|handler| handler.info.clone()).collect();
        };
        let Some(node) = self.nodes.get(index) else { return Vec::new() };
        let mut handlers = node.class.handlers();
        // While the element is being called, only the handlers of its class are listed.
        if let Ok(object) = node.object.try_borrow() {
            handlers.extend(object.iter().flat_map(|object| object.more_handlers()));
        }
        for StandardHandler { info, .. } in self.element_handlers(index) {
            if !handlers.iter().any(|own| own.name == info.name && own.is_read() == info.is_read()) {
                handlers.push(info.clone());
            }
        }
        handlers
    }
}

/// Replaces the handler's name in an element's error by the full path.
fn with_path(error: HandlerError, path: &str) -> HandlerError {
    match error {
        HandlerError::NoHandler(_) => HandlerError::NoHandler(path.to_string()),
        HandlerError::WrongKind { read, .. } => HandlerError::WrongKind { path: path.to_string(), read },
        HandlerError::NoParameter(_) => HandlerError::NoParameter(path.to_string()),
        other => other,
    }
}
