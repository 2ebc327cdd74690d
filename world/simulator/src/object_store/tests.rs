//! Tests of the store and its records.
