//! The arguments that all rewriters have.

/// The struct of a rewriter's arguments: its own, then those that all have. With `[..]` those between are more of its own.
///
/// `into_settings` makes its settings, given the lifetimes of its flows, and whether the destination annotation is set. With
/// `tcp` in front it has the timeouts of TCP as well, which `tcp_lifetimes` gives.
macro_rules! rewriter_arguments {
    ($(#[$attribute:meta])* $name:ident { tcp, $($own:tt)* } [ $($more:tt)* ]) => {
        rewriter_arguments! {
            $(#[$attribute])*
            $name {
                /// How long a TCP flow lives once data went both ways.
                #[arg(default = "24h")]
                tcp_timeout: Timestamp,
                /// Another name of TCP_TIMEOUT.
                timeout: Option<Timestamp>,
                /// How long a TCP flow lives after both sides have ended it.
                #[arg(default = "4m")]
                tcp_done_timeout: Timestamp,
                /// How long a TCP flow lives before data went both ways.
                #[arg(default = "5m")]
                tcp_nodata_timeout: Timestamp,
                /// How long after a packet a TCP flow is kept in any case.
                #[arg(default = "5")]
                tcp_guarantee: Timestamp,
                /// Another name of TCP_GUARANTEE.
                guarantee: Option<Timestamp>,
                $($own)*
            } [ $($more)* ]
        }

        impl $name {
            fn tcp_lifetimes(&self) -> Lifetimes {
                Lifetimes {
                    guarantee: seconds(self.guarantee.unwrap_or(self.tcp_guarantee)),
                    early: seconds(self.tcp_nodata_timeout),
                    settled: seconds(self.timeout.unwrap_or(self.tcp_timeout)),
                    done: seconds(self.tcp_done_timeout),
                    tracking: Tracking::Tcp,
                }
            }
        }
    };
    ($(#[$attribute:meta])* $name:ident { $($own:tt)* } [ $($more:tt)* ]) => {
        $(#[$attribute])*
        pub(crate) struct $name {
            $($own)*
            /// The most flows, or the name of the rewriter whose capacity is shared; without end if not given.
            mapping_capacity: Option<Raw>,
            /// Another name of MAPPING_CAPACITY.
            capacity: Option<Raw>,
            /// Time between searches for flows that are dead; 0 for none.
            #[arg(default = "15m")]
            reap_interval: Timestamp,
            /// An older name of REAP_INTERVAL.
            reap_time: Option<Timestamp>,
            $($more)*
            /// An annotation byte that replies get from the first packet of their flow.
            reply_anno: Option<Annotation<1>>,
            /// What becomes of packets of unknown flows: one for each input.
            #[arg(rest, keyword = "INPUTSPEC")]
            inputs: Vec<Raw>,
        }

        impl $name {
            fn into_settings(self, lifetimes: Vec<Lifetimes>, sets_destination: bool) -> Settings {
                Settings {
                    inputs: self.inputs,
                    lifetimes,
                    capacity: self.mapping_capacity.or(self.capacity).map(|Raw(text)| text),
                    interval: self.reap_time.unwrap_or(self.reap_interval),
                    annotations: annotations(sets_destination, self.reply_anno),
                }
            }
        }
    };
}

pub(super) use rewriter_arguments;
