"""Codes of languages: ISO 639-1 with its codes of ISO 639-2 and 639-3. A line of the table has two
letters, three, three of bibliographies where those differ, and the English name."""

from __future__ import annotations

import re

from tmnmt.errors import UsageError

_TABLE = """
aa aar - Afar
ab abk - Abkhazian
ae ave - Avestan
af afr - Afrikaans
ak aka - Akan
am amh - Amharic
an arg - Aragonese
ar ara - Arabic
as asm - Assamese
av ava - Avaric
ay aym - Aymara
az aze - Azerbaijani
ba bak - Bashkir
be bel - Belarusian
bg bul - Bulgarian
bi bis - Bislama
bm bam - Bambara
bn ben - Bangla
bo bod tib Tibetan
br bre - Breton
bs bos - Bosnian
ca cat - Catalan
ce che - Chechen
ch cha - Chamorro
co cos - Corsican
cr cre - Cree
cs ces cze Czech
cu chu - Church Slavic
cv chv - Chuvash
cy cym wel Welsh
da dan - Danish
de deu ger German
dv div - Divehi
dz dzo - Dzongkha
ee ewe - Ewe
el ell gre Greek
en eng - English
eo epo - Esperanto
es spa - Spanish
et est - Estonian
eu eus baq Basque
fa fas per Persian
ff ful - Fula
fi fin - Finnish
fj fij - Fijian
fo fao - Faroese
fr fra fre French
fy fry - Western Frisian
ga gle - Irish
gd gla - Scottish Gaelic
gl glg - Galician
gn grn - Guarani
gu guj - Gujarati
gv glv - Manx
ha hau - Hausa
he heb - Hebrew
hi hin - Hindi
ho hmo - Hiri Motu
hr hrv - Croatian
ht hat - Haitian Creole
hu hun - Hungarian
hy hye arm Armenian
hz her - Herero
ia ina - Interlingua
id ind - Indonesian
ie ile - Interlingue
ig ibo - Igbo
ii iii - Sichuan Yi
ik ipk - Inupiaq
io ido - Ido
is isl ice Icelandic
it ita - Italian
iu iku - Inuktitut
ja jpn - Japanese
jv jav - Javanese
ka kat geo Georgian
kg kon - Kongo
ki kik - Kikuyu
kj kua - Kuanyama
kk kaz - Kazakh
kl kal - Kalaallisut
km khm - Khmer
kn kan - Kannada
ko kor - Korean
kr kau - Kanuri
ks kas - Kashmiri
ku kur - Kurdish
kv kom - Komi
kw cor - Cornish
ky kir - Kyrgyz
la lat - Latin
lb ltz - Luxembourgish
lg lug - Ganda
li lim - Limburgish
ln lin - Lingala
lo lao - Lao
lt lit - Lithuanian
lu lub - Luba-Katanga
lv lav - Latvian
mg mlg - Malagasy
mh mah - Marshallese
mi mri mao Māori
mk mkd mac Macedonian
ml mal - Malayalam
mn mon - Mongolian
mr mar - Marathi
ms msa may Malay
mt mlt - Maltese
my mya bur Burmese
na nau - Nauru
nb nob - Norwegian Bokmål
nd nde - North Ndebele
ne nep - Nepali
ng ndo - Ndonga
nl nld dut Dutch
nn nno - Norwegian Nynorsk
no nor - Norwegian
nr nbl - South Ndebele
nv nav - Navajo
ny nya - Nyanja
oc oci - Occitan
oj oji - Ojibwa
om orm - Oromo
or ori - Odia
os oss - Ossetic
pa pan - Punjabi
pi pli - Pali
pl pol - Polish
ps pus - Pashto
pt por - Portuguese
qu que - Quechua
rm roh - Romansh
rn run - Rundi
ro ron rum Romanian
ru rus - Russian
rw kin - Kinyarwanda
sa san - Sanskrit
sc srd - Sardinian
sd snd - Sindhi
se sme - Northern Sami
sg sag - Sango
si sin - Sinhala
sk slk slo Slovak
sl slv - Slovenian
sm smo - Samoan
sn sna - Shona
so som - Somali
sq sqi alb Albanian
sr srp - Serbian
ss ssw - Swati
st sot - Southern Sotho
su sun - Sundanese
sv swe - Swedish
sw swa - Swahili
ta tam - Tamil
te tel - Telugu
tg tgk - Tajik
th tha - Thai
ti tir - Tigrinya
tk tuk - Turkmen
tl tgl - Tagalog
tn tsn - Tswana
to ton - Tongan
tr tur - Turkish
ts tso - Tsonga
tt tat - Tatar
tw twi - Twi
ty tah - Tahitian
ug uig - Uyghur
uk ukr - Ukrainian
ur urd - Urdu
uz uzb - Uzbek
ve ven - Venda
vi vie - Vietnamese
vo vol - Volapük
wa wln - Walloon
wo wol - Wolof
xh xho - Xhosa
yi yid - Yiddish
yo yor - Yoruba
za zha - Zhuang
zh zho chi Chinese
zu zul - Zulu
"""
_ROWS = [line.split(maxsplit=3) for line in _TABLE.strip().splitlines()]
# codes of ISO 639-3 for the usual one of several languages that a code of ISO 639-1 covers
_USUAL = """
arb ar, cmn zh, pes fa, ekk et, lvs lv, zsm ms, swh sw, azj az, uzn uz, khk mn, npi ne, ory or,
plt mg, als sq, ydd yi, gug gn, quy qu, kmr ku, pbt ps, iw he, in id, ji yi, mo ro
"""
_SHORT = {code: row[0] for row in _ROWS for code in row[:3] if code != "-"} | {
    usual.split()[0]: usual.split()[1] for usual in _USUAL.split(",")
}
_LOCAL = re.compile("q[a-t][a-z]")  # reserved for local use
NAMES = {row[0]: row[3] for row in _ROWS}
THREE = {row[0]: row[1] for row in _ROWS}  # codes of three letters by those of two


def short(code: str) -> str:
    """The code of two letters of a language: en for eng, de for ger. A code that is not in the
    table stays.

    code: a code of two or three letters, in lower case and without a region."""
    return _SHORT.get(code, code)


def check_language(code: str) -> None:
    """Checks that a code is of a language.

    code: the code, of which the first part counts, such as pt of pt-BR.

    Raises UsageError where it is of no language of ISO 639. For a name in English the message has
    the code."""
    from tmnmt.formats.iso639_3 import CODES

    main = code.replace("_", "-").partition("-")[0].lower()
    if main in _SHORT or main in CODES or _LOCAL.fullmatch(main):
        return
    codes = {name.lower(): short_code for short_code, name in NAMES.items()}
    right = f": write {codes[code.lower()]}" if code.lower() in codes else ", as en, pt-BR or ceb"
    raise UsageError(f"{code!r} is no code of a language in ISO 639{right}")
