"""Writes sample.warc.wet.gz and sample.jsonl, what warcio 1.8.1 reads of it.

    PYTHONPATH=WHERE_WARCIO_IS python3 tests/data/warc/make.py
"""

import io
import json
import pathlib

from warcio.archiveiterator import ArchiveIterator
from warcio.warcwriter import WARCWriter

FOLDER = pathlib.Path(__file__).parent
TEXTS = ["the w5 w6\nw7 w8 " * 9, "", "w5\r\nw6\n\nWARC/1.0\r\n\r\nthe w9\n", "Würde \u2028 \"w5\" \t щи"]


def main() -> None:
    packed = io.BytesIO()
    writer = WARCWriter(packed, gzip=True)
    writer.write_record(writer.create_warcinfo_record("sample", {"software": "warcio"}))
    for number, text in enumerate(TEXTS):
        headers = {"WARC-Date": f"2026-11-29T00:00:0{number}Z", "WARC-Record-ID": f"<urn:uuid:{number}>"}
        if number % 2:
            headers["WARC-Identified-Content-Language"] = "eng"
        writer.write_record(writer.create_warc_record(
            f"http://example.org/{number}", "conversion", payload=io.BytesIO(text.encode()),
            warc_content_type="text/plain", warc_headers_dict=headers))
    (FOLDER / "sample.warc.wet.gz").write_bytes(packed.getvalue())
    packed.seek(0)
    with open(FOLDER / "sample.jsonl", "w", encoding="utf-8") as file:
        for record in ArchiveIterator(packed):
            if record.rec_type != "conversion":
                continue
            head = record.rec_headers
            row = {"text": record.content_stream().read().decode(),
                   "id": head.get_header("WARC-Record-ID"),
                   "url": head.get_header("WARC-Target-URI"),
                   "date": head.get_header("WARC-Date")}
            if head.get_header("WARC-Identified-Content-Language"):
                row["language"] = head.get_header("WARC-Identified-Content-Language")
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
