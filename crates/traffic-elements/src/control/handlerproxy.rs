//! `HandlerProxy`: gives access to handlers of other elements under one name.

use element::arguments::{ElementName, SpaceSeparated};
use element::prelude::*;
use element::{HandlerInfo, HandlerKind};

/// Forwards handler calls: `proxy.e.h` stands for the handler `e.h`.
///
/// A ControlSocket with PROXY gives its clients access only through such an element: to the handlers of ELEMENTS, or of
/// all elements and the router if there are none. READONLY refuses writes.
/// ```click
/// source :: InfiniteSource(LIMIT 4, STOP true) -> c :: Counter -> Discard;
/// proxy :: HandlerProxy(c, READONLY true);
/// ```
/// ```expect
/// proxy.c.count = 4
/// c.count = 4
/// ```
/// ## Differences
/// In Click this class is only a base class and cannot appear in a configuration.
#[derive(Args)]
#[element(name = "HandlerProxy", group = "control", ports = "0/0", see = "ControlSocket")]
pub struct HandlerProxyArgs {
    /// Elements whose handlers may be called; empty for all.
    #[arg(position, default = "")]
    elements: SpaceSeparated<ElementName>,
    /// Refuse writes.
    #[arg(default = "false")]
    readonly: bool,
}

pub struct HandlerProxy {
    args: HandlerProxyArgs,
    /// Indexes of the elements.
    elements: Vec<usize>,
}

impl Element for HandlerProxy {
    type Args = HandlerProxyArgs;

    fn new(args: HandlerProxyArgs, _: &mut Setup) -> Result<HandlerProxy, SetupError> {
        Ok(HandlerProxy { args, elements: Vec::new() })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        for ElementName(name) in &self.args.elements.0 {
            let missing = || SetupError::argument("ELEMENTS", format_args!("no element named ‘{name}’"));
            self.elements.push(cx.runtime().find(cx.element(), name).ok_or_else(missing)?);
        }
        Ok(())
    }

    fn other_handler(
        &mut self,
        cx: &mut Context,
        name: &str,
        call: HandlerKind,
        value: &str,
    ) -> Option<Result<String, HandlerError>> {
        let target = match cx.runtime().resolve(cx.element(), name) {
            Ok(target) => target,
            Err(error) => return Some(Err(error)),
        };
        // A handler without an element is the router's; the proxy has none of its own here.
        let allowed =
            self.elements.is_empty() || target.element.is_some_and(|at| self.elements.contains(&at));
        let known = |info: &HandlerInfo| info.name == target.handler;
        let listed = cx.runtime().handlers(target.element);
        if !allowed || (target.element.is_none() && !listed.iter().any(known)) {
            return None;
        }
        if listed.iter().any(|info| known(info) && info.hidden) {
            return None;
        }
        Some(match call {
            HandlerKind::Write if self.args.readonly => {
                Err(HandlerError::new(format_args!("Permission denied for '{name}'")))
            }
            HandlerKind::Write => cx.write_handler(name, value).map(|()| String::new()),
            _ => cx.read_handler(name, value),
        })
    }
}
