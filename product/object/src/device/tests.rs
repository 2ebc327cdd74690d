//! Tests of the device's parts.
