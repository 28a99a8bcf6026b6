"""Small workbooks for tests: files that no library here writes, and bombs."""

from __future__ import annotations

import base64
import io
import zipfile
import zlib

_OFFICE = "urn:oasis:names:tc:opendocument:xmlns"
#: A statement of 2026 in the format of Excel 97, with a line above its header and an empty sheet.
_STATEMENT = (
    "c-rk)T}TvB6#iy*)?H2aFAcPiMaW7;{2>TJw?y;7luG&~sC9SHP-kRZ5q&7j_Av;ehoT+?d+5dLr5`G&w;lqe9)cjy>LKVUC"
    "=gPobI;D?Pf9MBV9Yn%bMHC#+%xCid+yK7#CULW<Uzp{mY^0c%$b?USRj)qW!g*tRBxK1Xy;x^rh^TIOfOAjh8s_FUVFqGiu"
    "s;`jQh$<qQFN=r_qBJT~ovBh&uKmDhVHIB!yy6#w|)d<g;HPrZJ|QncidFXH568<O<Uo(w&q}VLZ}Ovd4<!6LJyP`G`t*#BJ"
    "WQq!M{}CF1zPRVk(G#(v{mv}=P^6e`&m1x;zAs;P$H{kVfHpuWDmxw-r#VG_AC-J|$nhJo+)x_%LM<m)S!K=SFua?c8KFHPc"
    "7`88PqhG3qRL@+1ehpvbk4~};CeohRkN#x)*Z{%(?boV3%W?+cW;Is{B(zS#hu5YNQs;sK0uCP!=&+f`iKwV#~qfcw^O+?#i"
    "uQ;X}{i+rhg28?@)=75j)PxajcLS}_uDI?efuSeDeOf%+L`_wVyg8_MXj$U;;O!=`XuHYbMVL)APQHtBke6bBdOLIX+neULL"
    "y<Eq8R8=*br5YAy@rX4q6IbfA=N<vQB%S#N||0_t6RBTz%-XMDK9>hXB7?%v(9C%EvENWGu}paEGX}!a`Nlp$A!sHkzG_CYn"
    "&R)9eWoUK@lB{acVD~VU$T_(#;zJPa<|MSzFczrulztUtT$2_06<STR&#Sf+Yl*3JsZiw^&1F4KXGu&K|!MCllxT&AEtEEL*"
    "N6w$960EDOOmA+x@VZHX~`PEr@!`Z;ZyLF~N_;)NAu87m4~30YPYwvu64QP@gptA}Xpi-)Y#${{=y4%4<hkF|>ytQalx*l5w"
    "hV}|9%%z*<34jede;NUM1*G6%na9P)8w{^|(SpRiqDa|>*N&Z_Lflg0?J}DcZQEp%$t@zmjw`ALrR@uh>Unp>#-fo~1ZR|&9"
    "+VM-*WNBf4R^2eLc1tMT_s^x{=Rbb`FUI&J!T"
)
#: A workbook with a password, of which everything but the table of its parts is zero.
_LOCKED = (
    "c-rk(+j81g6g~JB+r1@Co2G7>YV^v)LIQK~04W!9ld;X+WcngY0t7-5k_?7U|D%u1C-g7+*8V_e+E3^QH13uV7<@?)NoSI&7"
    "PC0$9G$by-h1iD{_WQXf4uy8=TCGEQM8I)U2dU`nLZbAWpZ(Ud~NX6<>lq1`_jRCg};GD{Z^rNYgR3dn%@I%TG!jqegOOs_!"
    "019;3s1Xpa;NDt@|9jf0#VKt5&;g{T~891AY#C1pET{82BY{2ly563Gi#+Q{Xp_XWj`EkqjRlVdwx!(5h&N?BEevpPu>Kcii"
    "*SU*9Ev9Q^K@wCl(+7r;<uO;rWddBmX;#6V96zMF9UZ@}S=G#k$%`diR<`fxn9fs&x4152<2LzzdKjrbqK8*rk%wqX3TV^z>"
    "oK~aDzNXS0!qZOCk_>I0pYwTw9d1#e|^>;wuI6Ky@cmE>##@`Uio%&hGLj$t07@i=P8UH=AmiF^sGCgnPzIn}y<BHte-#mOv"
    "<lpegx7Ju0^cc|5%$QZwwIBb~f1Ce7{5SV^J$~0T{;ehSH{f|!L8}WYcF!JUzI*KF-|*@$=(h7`9J8GYJO%v~>+fJY=g-S^^"
    "iCiQ%tPF)=>iSdfIRG?gqaD$`2w`Y8MS-sNjdo+z_q0QrZu-Uvj(=ndx3fj&+e=~wdAvKYRxy!)9+CVJ|PrCUT8h={S56PKd"
    "hC4Uq1LnntgHDSrSH!(HQiTkZlrrJSYJBFz)*S9oeYMqI<ooR%>tIpEdXxXIc39MOVc7ys8PZ6v4?|503E?D|3R>jNp}W>RA"
    "xSG@X$+MwBH!f)9BOe;(Zq!%gZ?(P0(_D@a-dZ|S<SPY@d0;=7Et+Z9+<*5ro1%gS9sZZrgzCn%4{Ph3sK$8+};8?!t7@L;@"
    "vtP%>NX#-j1CJV94F2wSxF2ES0^LTU{1B78b$><EGF``})Mi4vc$FVa}W;<7xa8q2+A$n>Lu3C)N8jtyXxVg#{te~`bH6}J?"
    "RnS}A2p&5q;Z|>=#R!s_@X4>d%<+kMV!Yzaq*5lfM^d=Crz#_!gHoYKd+SOo*9}qu+T9q@^nsWfL?SpwSb=a5MOM=JCM+_<t"
    "nBk#rpvH2KZKG}wL&iBJ8D!lMLG(mmB3jkLCLv5HeF$4w@>KB+)Cf=miT(Vm-p7ye5)SFRf~F>rjC5ElbSz&8uumi3fb`F{n"
    ">h`Lsh7zv4c4+Yrknui)(GIE%NEQTxSTG*Bb2@6Y6m3d{1qr*v@E>DjvsaZ_};N9cAG6w(1p6HdHJ6eMEH>qU&tDU5UHP!Oq"
    "A_i~@e8q!wo5oh_^uot9y)A3IltH#S{#uEb$we;P0371I<!O33Gu4o>kHz-?G*-aOYZXS28Ktk>$!xK3=4!g0BJm<|^EoI3I"
    "fMKQw-=4xK$Rd}L!H3LFfNjZl+(0k1+KOEI!J%+3ni;130*8DM;^;+3mSG4w#5h{}0WiGOEHNzkF`}L8O@%KoYOS|ix<iNj|"
    "d=Utop0s7%Q%qDEG&LxRxkk6!$@B}EL?<0oDDNRX408RRFQ<v(fto+c&&L6^oCKXc^AyX6>5JoFKS!5i?GiiS(kjW+UXaOxm"
    "tYG;cXh;S@niYQj;1x{3}o4qxaQOF%)uDlMh+Y}aNxj!0|yQqIB?*=fddB)960#D;vW{77jy"
)
STATEMENT_XLS, LOCKED_XLSX = (zlib.decompress(base64.b85decode(packed)) for packed in (_STATEMENT, _LOCKED))


def ods(rows: str) -> bytes:
    """Make an OpenDocument workbook of one sheet from the XML of its rows."""
    media = "application/vnd.oasis.opendocument.spreadsheet"
    spaces = " ".join(f'xmlns:{name}="{_OFFICE}:{name}:1.0"' for name in ("office", "table", "text"))
    entry = f'<m:file-entry m:full-path="/" m:media-type="{media}"/>'
    parts = {
        "mimetype": media,
        "META-INF/manifest.xml": f'<m:manifest xmlns:m="{_OFFICE}:manifest:1.0">{entry}</m:manifest>',
        "content.xml": f"<office:document-content {spaces}><office:body><office:spreadsheet>"
        f'<table:table table:name="Sheet">{rows}</table:table></office:spreadsheet></office:body></office:document-content>',
    }
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return content.getvalue()


def ods_row(*cells: object, repeated: int = 1) -> str:
    return f'<table:table-row table:number-rows-repeated="{repeated}">{"".join(map(_cell, cells))}</table:table-row>'


def _cell(value: object) -> str:
    if isinstance(value, int | float):
        return f'<table:table-cell office:value-type="float" office:value="{value}"/>'
    text = str(value)
    if text[:4].isdigit():
        return f'<table:table-cell office:value-type="date" office:date-value="{text}"/>'
    return f'<table:table-cell office:value-type="string"><text:p>{text}</text:p></table:table-cell>'
