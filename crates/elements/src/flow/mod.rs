//! Tables of flows.
