//! `HandlerAggregate`: adds up a handler of several elements.

use element::arguments::ElementName;
use element::number_format::general;
use element::prelude::*;

/// Adds up or averages a handler of several elements, and writes a handler of all of them.
///
/// The handler is named when it is called: `all.add count` is the sum of the `count` handlers, and `write all.write reset`
/// resets all counters. A value that is no number is an error.
/// ```click
/// InfiniteSource(LIMIT 4, STOP true) -> a :: Counter -> b :: Counter -> Discard;
/// all :: HandlerAggregate(ELEMENT a, ELEMENT b);
/// sum :: Script(TYPE PASSIVE, return $(all.add count));
/// mean :: Script(TYPE PASSIVE, return $(all.avg count));
/// ```
/// ```expect
/// a.count = 4
/// b.count = 4
/// sum.run = 8
/// mean.run = 4
/// ```
/// ## Differences
/// The class is one of FastClick. There, a value that is no number counts as 0.
#[derive(Args)]
#[element(name = "HandlerAggregate", group = "control", ports = "0/0", see = "HandlerProxy, Script")]
pub struct HandlerAggregateArgs {
    /// An element; may be repeated.
    #[arg(repeated)]
    element: Vec<ElementName>,
}

pub struct HandlerAggregate(Vec<ElementName>);

impl Element for HandlerAggregate {
    type Args = HandlerAggregateArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read_with(
            "add",
            "The sum of the handler that the parameter names.",
            |aggregate, cx, call| Ok(general(aggregate.sum(cx, call)?)),
        ),
        Handler::read_with(
            "avg",
            "The mean of the handler that the parameter names.",
            |aggregate, cx, call| Ok(general(aggregate.sum(cx, call)? / aggregate.0.len().max(1) as f64)),
        ),
        Handler::action(
            "write",
            "Writes the handler that the first word names, with the rest as its value.",
            |all, cx, call| {
                let (handler, value) = call.split_once(' ').unwrap_or((call, ""));
                all.0.iter().try_for_each(|element| cx.write_handler(&path(element, handler), value))
            },
        ),
    ];

    fn new(args: HandlerAggregateArgs, _: &mut Setup) -> Result<HandlerAggregate, SetupError> {
        Ok(HandlerAggregate(args.element))
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        for ElementName(name) in &self.0 {
            let missing = || SetupError::argument("ELEMENT", format_args!("no element named ‘{name}’"));
            cx.runtime().find(cx.element(), name).ok_or_else(missing)?;
        }
        Ok(())
    }
}

impl HandlerAggregate {
    fn sum(&self, cx: &Context, call: &str) -> Result<f64, HandlerError> {
        let (handler, parameter) = call.split_once(' ').unwrap_or((call, ""));
        let mut sum = 0.0;
        for element in &self.0 {
            let path = path(element, handler);
            let value = cx.read_handler(&path, parameter)?;
            sum += value
                .trim()
                .parse::<f64>()
                .map_err(|_| HandlerError::new(format_args!("‘{path}’ is no number: {}", value.trim())))?;
        }
        Ok(sum)
    }
}

fn path(element: &ElementName, handler: &str) -> String {
    format!("{}.{handler}", element.0)
}
