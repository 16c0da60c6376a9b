//! Tables as Apache Parquet, for tools that read columns.
//!
//! Of the format, a flat table needs very little: `INT64`, `DOUBLE` and UTF-8 `BYTE_ARRAY`
//! columns, all optional, in plain encoding, uncompressed, one data page (version 1) per column
//! and row group. The metadata is Thrift in its compact protocol (`thrift`). The bytes depend on
//! the table alone.

mod thrift;

use super::table::{Cell, Column, Kind, Table};
use thrift::Struct;

/// First and last bytes of a file.
const MAGIC: &[u8; 4] = b"PAR1";
/// Rows of a row group. Keeps every page far below the 2 GiB that its header can express.
const GROUP_ROWS: usize = 65_536;
/// Who wrote it.
const CREATED_BY: &str = concat!("takt version ", env!("CARGO_PKG_VERSION"));

/// Numbers of the format.
mod code {
    pub(super) const INT64: i32 = 2;
    pub(super) const DOUBLE: i32 = 5;
    pub(super) const BYTE_ARRAY: i32 = 6;
    pub(super) const OPTIONAL: i32 = 1;
    pub(super) const UTF8: i32 = 0;
    pub(super) const PLAIN: i32 = 0;
    pub(super) const RLE: i32 = 3;
    pub(super) const DATA_PAGE: i32 = 0;
    pub(super) const UNCOMPRESSED: i32 = 0;
}

const fn physical(kind: Kind) -> i32 {
    match kind {
        Kind::Int => code::INT64,
        Kind::Float => code::DOUBLE,
        Kind::Text => code::BYTE_ARRAY,
    }
}

/// The table as the bytes of a Parquet file.
pub fn encode(table: &Table) -> Vec<u8> {
    let mut file = MAGIC.to_vec();
    let groups: Vec<Struct> =
        table.rows.chunks(GROUP_ROWS).map(|rows| row_group(&mut file, &table.columns, rows)).collect();
    let root = Struct::new().text(4, "schema").i32(5, narrow(table.columns.len()));
    let schema = std::iter::once(root).chain(table.columns.iter().map(schema_element)).collect();
    let footer = Struct::new()
        .i32(1, 1)
        .structs(2, schema)
        .i64(3, wide(table.rows.len()))
        .structs(4, groups)
        .text(6, CREATED_BY)
        .finish();
    file.extend_from_slice(&footer);
    file.extend_from_slice(&narrow(footer.len()).to_le_bytes());
    file.extend_from_slice(MAGIC);
    file
}

fn schema_element(column: &Column) -> Struct {
    let element = Struct::new().i32(1, physical(column.kind)).i32(3, code::OPTIONAL).text(4, &column.name);
    match column.kind {
        // Both the old and the new way to say that bytes are text.
        Kind::Text => element.i32(6, code::UTF8).inner(10, Struct::new().inner(1, Struct::new())),
        Kind::Int | Kind::Float => element,
    }
}

/// Appends the columns of some rows to the file; what the footer says about them.
fn row_group(file: &mut Vec<u8>, columns: &[Column], rows: &[Vec<Cell>]) -> Struct {
    let start = file.len();
    let chunk = |(index, column): (usize, &Column)| {
        let cells: Vec<&Cell> = rows.iter().map(|row| row.get(index).unwrap_or(&Cell::Null)).collect();
        let offset = file.len();
        let page = page(column.kind, &cells);
        let header = Struct::new()
            .i32(1, code::DATA_PAGE)
            .i32(2, narrow(page.len()))
            .i32(3, narrow(page.len()))
            .inner(
                5,
                Struct::new()
                    .i32(1, narrow(cells.len()))
                    .i32(2, code::PLAIN)
                    .i32(3, code::RLE)
                    .i32(4, code::RLE),
            );
        file.extend_from_slice(&header.finish());
        file.extend_from_slice(&page);
        let size = wide(file.len() - offset);
        let data = Struct::new()
            .i32(1, physical(column.kind))
            .i32s(2, &[code::PLAIN, code::RLE])
            .texts(3, &[&column.name])
            .i32(4, code::UNCOMPRESSED)
            .i64(5, wide(cells.len()))
            .i64(6, size)
            .i64(7, size)
            .i64(9, wide(offset));
        Struct::new().i64(2, wide(offset)).inner(3, data)
    };
    let chunks: Vec<Struct> = columns.iter().enumerate().map(chunk).collect();
    Struct::new().structs(1, chunks).i64(2, wide(file.len() - start)).i64(3, wide(rows.len()))
}

/// Which cells have values, then the values.
fn page(kind: Kind, cells: &[&Cell]) -> Vec<u8> {
    let values: Vec<Option<Vec<u8>>> = cells.iter().map(|cell| plain(kind, cell)).collect();
    let levels = bit_packed(&values.iter().map(Option::is_some).collect::<Vec<_>>());
    let mut page = narrow(levels.len()).to_le_bytes().to_vec();
    page.extend_from_slice(&levels);
    values.into_iter().flatten().for_each(|value| page.extend_from_slice(&value));
    page
}

/// A value in plain encoding; `None` if there is none, or none of this kind.
fn plain(kind: Kind, cell: &Cell) -> Option<Vec<u8>> {
    match (kind, cell) {
        (_, Cell::Null) => None,
        (Kind::Int, Cell::Int(value)) => Some(value.to_le_bytes().to_vec()),
        (Kind::Int, _) => None,
        (Kind::Float, cell) => cell.number().map(|value| value.to_le_bytes().to_vec()),
        (Kind::Text, cell) => {
            let text = cell.to_string();
            Some([&narrow(text.len()).to_le_bytes(), text.as_bytes()].concat())
        }
    }
}

/// Levels of one bit as a single bit-packed run of the hybrid encoding.
fn bit_packed(bits: &[bool]) -> Vec<u8> {
    let bytes = bits.chunks(8);
    let mut out = Vec::new();
    thrift::varint(&mut out, (bytes.len() as u64) << 1 | 1);
    out.extend(bytes.map(|byte| {
        byte.iter().enumerate().fold(0u8, |packed, (index, bit)| packed | u8::from(*bit) << index)
    }));
    out
}

/// Lengths and counts, all of which are small; see [`GROUP_ROWS`].
fn narrow(length: usize) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX)
}

fn wide(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
