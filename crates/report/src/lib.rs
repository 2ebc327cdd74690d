//! Display of figures: tables, rows of JSON, plots, pages.
//!
//! Owns: units, aligned tables (`table`), one JSON object a row (`row`), SVG plots (`plot`, `bars`), self-contained
//! HTML pages (`page`), the abilities of a terminal (`terminal`).
//! Does not own: the figures and the words about them (callers); files and streams: all results are text.
//! Invariants: imports none of our crates. All text from callers is escaped on its way into HTML and SVG. A page loads
//! nothing. The same figures give the same text.

#![forbid(unsafe_code)]

mod axis;
mod bars;
mod entries;
mod legend;
mod markup;
mod page;
mod plot;
mod row;
mod scale;
mod sheet;
mod table;
pub mod terminal;
pub mod units;

pub use axis::{Axis, Quantity};
pub use bars::{Bar, Bars};
pub use entries::entries;
pub use page::{Figure, Page};
pub use plot::{Plot, Series, Shape};
pub use row::{Fields, Row, Source};
pub use table::{Align, Cell, Table};
