//! The configurations of `examples/`.

/// A configuration that ships with the program.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// Its name: that of the file without its ending.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

macro_rules! example {
    ($name:literal) => {
        Example { name: $name, text: include_str!(concat!("../../../../examples/", $name, ".click")) }
    };
}

/// The nine middleboxes that the ClickOS paper measures, in its order.
pub const EXAMPLES: &[Example] = &[
    example!("wire"),
    example!("ethermirror"),
    example!("router"),
    example!("firewall"),
    example!("nat"),
    example!("bras"),
    example!("ids"),
    example!("loadbalancer"),
    example!("flowmonitor"),
];
