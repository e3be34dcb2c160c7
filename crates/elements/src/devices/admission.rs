//! Which hosts a server takes packets from, by route tables.

use core::net::Ipv4Addr;

use element::HandlerKind;
use element::arguments::ElementName;
use element::prelude::*;

/// Two route tables: who has a route in the first is let in, else who has one in the second is not.
#[derive(Default)]
pub(super) struct Admission {
    allow: Option<String>,
    deny: Option<String>,
}

impl Admission {
    /// From the arguments ALLOW and DENY, once all elements exist.
    pub(super) fn new(
        cx: &Context,
        allow: Option<&ElementName>,
        deny: Option<&ElementName>,
    ) -> Result<Admission, SetupError> {
        Ok(Admission { allow: table(cx, "ALLOW", allow)?, deny: table(cx, "DENY", deny)? })
    }

    /// Whether a host is let in.
    pub(super) fn admits(&self, cx: &Context, host: Ipv4Addr) -> bool {
        let has = |table: &Option<String>| {
            let Some(path) = table else { return false };
            // An answer is an output, or -1 where there is no route.
            cx.read_handler(path, &host.to_string()).is_ok_and(|answer| !answer.starts_with('-'))
        };
        has(&self.allow) || !has(&self.deny)
    }
}

/// The handler that looks routes up.
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
