//! The configurations that ship with the program.

/// A configuration of `examples/`.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// Its name: that of the file without its ending.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
    /// Whether the addresses of the traffic matter to it: whether it is measured with many flows.
    pub has_flows: bool,
}

macro_rules! example {
    ($name:literal, $has_flows:literal) => {
        Example {
            name: $name,
            text: include_str!(concat!("../../../../examples/", $name, ".click")),
            has_flows: $has_flows,
        }
    };
}

/// The nine middleboxes that the ClickOS paper measures, in its order.
pub const EXAMPLES: &[Example] = &[
    example!("wire", false),
    example!("ethermirror", false),
    example!("router", false),
    example!("firewall", false),
    example!("nat", true),
    example!("bras", false),
    example!("ids", false),
    example!("loadbalancer", true),
    example!("flowmonitor", true),
];
