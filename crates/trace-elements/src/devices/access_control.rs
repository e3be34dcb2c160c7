//! Access control of a server, by route tables.

use core::net::Ipv4Addr;

use element::HandlerKind;
use element::arguments::ElementName;
use element::prelude::*;

/// Two route tables. A host with a route in the first is admitted; otherwise one with a route in the second is
/// rejected.
#[derive(Default)]
pub(super) struct AccessControl {
    allow: Option<String>,
    deny: Option<String>,
}

impl AccessControl {
    /// Resolves the arguments ALLOW and DENY, once all elements exist.
    pub(super) fn new(
        cx: &Context,
        allow: Option<&ElementName>,
        deny: Option<&ElementName>,
    ) -> Result<AccessControl, SetupError> {
        Ok(AccessControl { allow: table(cx, "ALLOW", allow)?, deny: table(cx, "DENY", deny)? })
    }

    /// Whether a host is admitted.
    pub(super) fn admits(&self, cx: &Context, host: Ipv4Addr) -> bool {
        let has = |table: &Option<String>| {
            let Some(path) = table else { return false };
            // The value is an output, or -1 without a route.
            cx.read_handler(path, &host.to_string()).is_ok_and(|answer| !answer.starts_with('-'))
        };
        has(&self.allow) || !has(&self.deny)
    }
}

/// The path of the handler that looks up routes.
fn table(cx: &Context, keyword: &str, name: Option<&ElementName>) -> Result<Option<String>, SetupError> {
    let Some(ElementName(name)) = name else { return Ok(None) };
    let runtime = cx.runtime();
    let element = runtime
        .find(cx.element(), name)
        .ok_or_else(|| SetupError::argument(keyword, "does not name an element"))?;
    let has = |handler: &str| {
        let listed = runtime.handlers(Some(element));
        listed.iter().any(|info| info.name == handler && info.kind == HandlerKind::ReadWithParameter)
    };
    if !has("lookup") {
        return Err(SetupError::new(format_args!("{name} is not an IPRouteTable")));
    }
    Ok(Some(format!("{name}.lookup")))
}
