"""The style sheet of HTML reports."""

PAGE_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222;
  max-width: 75rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { padding: .35rem .7rem; text-align: right; border-bottom: 1px solid #ddd; white-space: nowrap; }
th.text, td.text { text-align: left; }
.muted { color: #666; } img { max-width: 100%; }
pre { background: #f6f6f6; padding: .8rem; white-space: pre-wrap; font-size: .8rem; }
@media (prefers-color-scheme: dark) { body { background: #181818; color: #ddd; } pre { background: #222; }
  th, td { border-color: #444; } .muted { color: #999; } img { background: #fff; } }
"""
