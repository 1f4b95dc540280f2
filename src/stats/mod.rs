//! Statistics as pure functions over slices: no I/O, no clock.
