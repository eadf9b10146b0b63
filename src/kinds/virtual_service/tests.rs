//! VirtualServices: what is refused, what is warned of, and what they mean.
