"""Unit tables: how text writes each unit, before and after a number.

Three families share one naming scheme, pint's: a unit is a product of factors, written ``"milligram / kilogram"`` or
``"meter ** 2"``.

- physical units carry pint's names;
- money carries ISO 4217 codes (names and symbols from Babel); minor coins are ``"USD_cent"``, ``"GBP_penny"``;
- counted things are their own singular noun, ``"patient"``, and need no table.
"""

from __future__ import annotations

from babel import numbers as babel_numbers

# One row per unit: pint's name, class, case-sensitive symbols, words (plurals are derived unless written as "a|b").
# The order of symbols and words is the order of preference when we write the unit.
_PHYSICAL_ROWS = """
kilometer; length; km; kilometer, kilometre
meter; length; m; meter, metre
centimeter; length; cm; centimeter, centimetre
millimeter; length; mm; millimeter, millimetre
micrometer; length; µm μm um; micrometer, micrometre, micron
nanometer; length; nm; nanometer, nanometre
angstrom; length; Å; angstrom
inch; length; in; inch|inches, ins|ins
foot; length; ft; foot|feet
yard; length; yd yds; yard
mile; length; mi; mile
nautical_mile; length; nmi; nautical mile, sea mile
light_year; length; ly; light year, light-year
fathom; length; ; fathom
metric_ton; mass; t mt MT; tonne, metric ton, metric tonne, mt|mts
kilotonne; mass; kt; kilotonne, kiloton
megatonne; mass; Mt; megatonne, megaton
ton; mass; ; ton, short ton
long_ton; mass; ; long ton
kilogram; mass; kg kgs Kg KG; kilogram, kilo, kilogramme
gram; mass; g gm gms gr; gram, gramme
milligram; mass; mg mgs; milligram, milligramme
microgram; mass; µg μg ug mcg; microgram, microgramme
nanogram; mass; ng; nanogram
picogram; mass; pg; picogram
pound; mass; lb lbs; pound
ounce; mass; oz ozs; ounce
troy_ounce; mass; ozt; troy ounce
hundredweight; mass; cwt; hundredweight|hundredweight
carat; mass; ; carat
dalton; mass; Da; dalton
kilodalton; mass; kDa; kilodalton
year; time; yr yrs; year, yr|yrs
month; time; mo mos mth mths; month, mth|mths
week; time; wk wks; week, wk|wks
day; time; d; day
hour; time; h hr hrs; hour
minute; time; min mins; minute
second; time; s sec secs; second
millisecond; time; ms msec; millisecond
microsecond; time; µs μs; microsecond
nanosecond; time; ns; nanosecond
fortnight; time; ; fortnight
century; time; ; century|centuries
acre; area; ac; acre
hectare; area; ha; hectare
liter; volume; L l; liter, litre, ltr|ltrs
milliliter; volume; mL ml; milliliter, millilitre
microliter; volume; µL μL µl μl uL ul; microliter, microlitre
nanoliter; volume; nL nl; nanoliter, nanolitre
deciliter; volume; dL dl; deciliter, decilitre
centiliter; volume; cL cl; centiliter, centilitre
hectoliter; volume; hL hl; hectoliter, hectolitre
femtoliter; volume; fL fl; femtoliter
cubic_centimeter; volume; cc ccm; cc|ccs
gallon; volume; gal gals; gallon
quart; volume; qt; quart
pint; volume; ; pint
fluid_ounce; volume; ; fluid ounce
barrel; volume; bbl bbls bl; barrel, brl|brls
bushel; volume; bu; bushel, bsh|bsh
cup; volume; ; cup
tablespoon; volume; tbsp; tablespoon
teaspoon; volume; tsp; teaspoon
degree_Celsius; temperature; °C ℃; degree celsius|degrees celsius, degree centigrade|degrees centigrade, celsius|celsius
degree_Fahrenheit; temperature; °F ℉ degF; degree fahrenheit|degrees fahrenheit, fahrenheit|fahrenheit
kelvin; temperature; K; kelvin
degree; angle; ° deg; degree
millimeter_Hg; pressure; mmHg mmhg MmHg torr Torr; mm hg|mm hg, mm of hg|mm of hg, millimeters of mercury|mm of mercury
centimeter_H2O; pressure; cmH2O; cm of water|cm of water
pascal; pressure; Pa; pascal
hectopascal; pressure; hPa; hectopascal
kilopascal; pressure; kPa; kilopascal
megapascal; pressure; MPa; megapascal
gigapascal; pressure; GPa; gigapascal
bar; pressure; bar; bar
millibar; pressure; mbar; millibar
standard_atmosphere; pressure; atm; atmosphere
pound_force_per_square_inch; pressure; psi; psi|psi
joule; energy; J; joule
kilojoule; energy; kJ; kilojoule
megajoule; energy; MJ; megajoule
gigajoule; energy; GJ; gigajoule
calorie; energy; cal; calorie
kilocalorie; energy; kcal; kilocalorie, kcals|kcals
british_thermal_unit; energy; Btu BTU btu; british thermal unit
watt_hour; energy; Wh; watt hour, watt-hour
kilowatt_hour; energy; kWh kwh KWh; kilowatt hour, kilowatt-hour
megawatt_hour; energy; MWh; megawatt hour, megawatt-hour
gigawatt_hour; energy; GWh; gigawatt hour, gigawatt-hour
terawatt_hour; energy; TWh; terawatt hour, terawatt-hour
electron_volt; energy; eV; electronvolt, electron volt
kiloelectron_volt; energy; keV; kiloelectronvolt
megaelectron_volt; energy; MeV; megaelectronvolt
therm; energy; ; therm
milliwatt; power; mW; milliwatt
watt; power; W; watt
kilowatt; power; kW kw KW; kilowatt
megawatt; power; MW mw; megawatt
gigawatt; power; GW; gigawatt
terawatt; power; TW; terawatt
horsepower; power; hp HP bhp; horsepower|horsepower
knot; speed; kn; knot
bit; data; ; bit
kilobit; data; kbit Kbit kb; kilobit
megabit; data; Mbit Mb; megabit
gigabit; data; Gbit Gb; gigabit
terabit; data; Tbit Tb; terabit
byte; data; ; byte
kilobyte; data; kB KB; kilobyte
megabyte; data; MB; megabyte
gigabyte; data; GB; gigabyte
terabyte; data; TB; terabyte
petabyte; data; PB; petabyte
exabyte; data; EB; exabyte
kibibyte; data; KiB; kibibyte
mebibyte; data; MiB; mebibyte
gibibyte; data; GiB; gibibyte
tebibyte; data; TiB; tebibyte
hertz; frequency; Hz hz; hertz|hertz
kilohertz; frequency; kHz khz; kilohertz|kilohertz
megahertz; frequency; MHz Mhz; megahertz|megahertz
gigahertz; frequency; GHz Ghz; gigahertz|gigahertz
terahertz; frequency; THz; terahertz|terahertz
revolutions_per_minute; frequency; rpm RPM; revolutions per minute|revolutions per minute
volt; electric; V; volt
millivolt; electric; mV; millivolt
microvolt; electric; µV μV; microvolt
kilovolt; electric; kV; kilovolt
ampere; electric; A; ampere, amp
milliampere; electric; mA; milliampere, milliamp
microampere; electric; µA μA; microampere
ohm; electric; Ω; ohm
kiloohm; electric; kΩ; kiloohm, kilohm
megaohm; electric; MΩ; megaohm, megohm
farad; electric; ; farad
microfarad; electric; µF μF; microfarad
picofarad; electric; pF; picofarad
milliampere_hour; electric; mAh; milliampere hour
tesla; magnetic; T; tesla
millitesla; magnetic; mT; millitesla
mole; amount; mol; mole
millimole; amount; mmol mmols; millimole
micromole; amount; µmol μmol umol; micromole
nanomole; amount; nmol; nanomole
picomole; amount; pmol; picomole
femtomole; amount; fmol; femtomole
molar; concentration; M; molar|molar
millimolar; concentration; mM; millimolar|millimolar
micromolar; concentration; µM μM uM; micromolar|micromolar
nanomolar; concentration; nM; nanomolar|nanomolar
picomolar; concentration; pM; picomolar|picomolar
newton; force; N; newton
kilonewton; force; kN; kilonewton
millinewton; force; mN; millinewton
gray; radiation; Gy; gray|gray
centigray; radiation; cGy; centigray|centigray
milligray; radiation; mGy; milligray|milligray
sievert; radiation; Sv; sievert
millisievert; radiation; mSv; millisievert
microsievert; radiation; µSv μSv; microsievert
becquerel; radiation; Bq; becquerel
megabecquerel; radiation; MBq; megabecquerel
curie; radiation; Ci; curie
millicurie; radiation; mCi; millicurie
lux; light; lx; lux|lux
lumen; light; lm; lumen
candela; light; cd; candela
decibel; level; dB; decibel
enzyme_unit; catalysis; U; enzyme unit
pixel; count; px; pixel
megapixel; count; MP; megapixel
"""

# Units pint does not have. name: (class, factor, dimension, symbols, words)
_OWN_UNITS: dict[str, tuple[str, float, str, str, str]] = {
    "percent": ("percent", 1.0, "percent", "%", "percent|percent, per cent|per cent, pct|pct, pc|pc, p.c.|p.c."),
    "percentage_point": ("percent", 1.0, "percent", "", "percentage point, percent point, percentage-point"),
    "basis_point": ("percent", 0.01, "percent", "bp bps", "basis point, basis-point"),
    "permille": ("percent", 0.1, "percent", "‰", "per mille|per mille, permille|permille"),
    "ppm": ("fraction", 1e-4, "percent", "ppm", "parts per million|parts per million"),
    "ppb": ("fraction", 1e-7, "percent", "ppb", "parts per billion|parts per billion"),
    "international_unit": ("activity", 1.0, "international_unit", "IU iu IE", "international unit"),
    "milli_international_unit": ("activity", 1e-3, "international_unit", "mIU", ""),
    "micro_international_unit": ("activity", 1e-6, "international_unit", "µIU μIU uIU", ""),
    "mega_international_unit": ("activity", 1e6, "international_unit", "MIU", ""),
    "equivalent": ("amount", 1.0, "equivalent", "Eq", ""),
    "milliequivalent": ("amount", 1e-3, "equivalent", "mEq meq mEQ", "milliequivalent"),
    "microequivalent": ("amount", 1e-6, "equivalent", "µEq μEq", ""),
    "osmole": ("amount", 1.0, "osmole", "Osm", "osmole"),
    "milliosmole": ("amount", 1e-3, "osmole", "mOsm mosm mOsmol mosmol", "milliosmole"),
    "dioptre": ("optics", 1.0, "dioptre", "", "diopter, dioptre"),
    "decade": ("time", 315_576_000.0, "second", "", "decade"),  # pint's decade is a factor of ten
    "metabolic_equivalent": ("count", 1.0, "metabolic_equivalent", "", "MET|METs"),
}
"""Percent has a dimension of its own: a share is not comparable with a ratio of lengths or a number of bits."""

_COMPOUND_WORDS = {
    "bpd": "barrel / day",
    "b/d": "barrel / day",
    "bopd": "barrel / day",
    "boepd": "barrel / day",
    "bbl/d": "barrel / day",
    "tpd": "metric_ton / day",
    "tpy": "metric_ton / year",
    "tpa": "metric_ton / year",
    "t/d": "metric_ton / day",
    "mph": "mile / hour",
    "MPH": "mile / hour",
    "kph": "kilometer / hour",
    "kmh": "kilometer / hour",
    "kmph": "kilometer / hour",
    "km/hr": "kilometer / hour",
    "kbps": "kilobit / second",
    "Kbps": "kilobit / second",
    "Mbps": "megabit / second",
    "mbps": "megabit / second",
    "Gbps": "gigabit / second",
    "gbps": "gigabit / second",
    "Tbps": "terabit / second",
    "MBps": "megabyte / second",
    "bpm": "beat / minute",
    "cfm": "foot ** 3 / minute",
    "mpg": "mile / gallon",
    "sqft": "foot ** 2",
    "sqm": "meter ** 2",
    "sqkm": "kilometer ** 2",
}


def _plural(word: str) -> str:
    return word + ("es" if word.endswith(("s", "x", "ch", "sh")) else "s")


SYMBOLS: dict[str, str] = {}
"""Case-sensitive written forms after a number."""
WORDS: dict[str, str] = {}
"""Lower-case written forms after a number, several words joined by one space."""
CLASSES: dict[str, str] = {}
"""Coarse class of each unit."""
FORMS: dict[str, list[str]] = {}
"""Written forms of each unit after a number, the preferred one first."""
OWN: dict[str, tuple[float, str]] = {}
"""Factor and root unit of what pint does not have."""


def _add(name: str, unit_class: str, symbols: str, words: str) -> None:
    CLASSES[name] = unit_class
    forms = FORMS.setdefault(name, [])
    for symbol in symbols.split():
        SYMBOLS.setdefault(symbol, name)
        forms.append(symbol)
    for word in filter(None, (w.strip() for w in words.split(","))):
        singular, _, plural = word.partition("|")
        plural = plural or _plural(singular)
        WORDS.setdefault(singular.lower().replace("-", " "), name)
        WORDS.setdefault(plural.lower().replace("-", " "), name)
        forms.append(plural)


for _row in _PHYSICAL_ROWS.strip().splitlines():
    _name, _class, _symbols, _words = (part.strip() for part in _row.split(";"))
    if _symbols or _words:
        _add(_name, _class, _symbols, _words)
for _name, (_class, _factor, _dimension, _symbols, _words) in _OWN_UNITS.items():
    _add(_name, _class, _symbols, _words)
    OWN[_name] = (_factor, _dimension)
for _form, _name in _COMPOUND_WORDS.items():
    if _name:
        SYMBOLS[_form] = _name
        FORMS.setdefault(_name, []).append(_form)
for _power, _adjectives in ((2, ("square", "sq")), (3, ("cubic", "cu"))):
    for _adjective in _adjectives:
        for _name in ("kilometer", "meter", "centimeter", "millimeter", "inch", "foot", "yard", "mile"):
            for _word in (*FORMS[_name],):
                WORDS[f"{_adjective} {_word.lower()}"] = f"{_name} ** {_power}"
            WORDS[f"{_adjective} {_name}"] = f"{_name} ** {_power}"
            WORDS[f"{_adjective} {_name.replace('meter', 'metre')}"] = f"{_name} ** {_power}"
            WORDS[f"{_adjective} {_name.replace('meter', 'metres')}"] = f"{_name} ** {_power}"
            FORMS.setdefault(f"{_name} ** {_power}", []).append(f"{_adjective} {FORMS[_name][-1]}")

# --- money ----------------------------------------------------------------------------------------------------------

# Words of wire copy and everyday English that Babel does not list. Where a bare word names several currencies
# ("francs", "crowns", "pesos"), the one that English text means by default is taken.
_MONEY_WORDS = {
    "USD": "dollar, dlr, buck, u.s. dollar, u.s. dlr, us dollar, us dlr, american dollar",
    "CAD": "canadian dollar, canadian dlr, cdn dlr, can dlr, cdn dollar",
    "AUD": "australian dollar, australian dlr, aust dlr",
    "NZD": "new zealand dollar, new zealand dlr, n.z. dlr, n.z. dollar, nz dlr",
    "HKD": "hong kong dollar, hong kong dlr, h.k. dlr, h.k. dollar, hk dlr",
    "SGD": "singapore dollar, singapore dlr",
    "TWD": "taiwan dollar, taiwan dlr, new taiwan dollar",
    "GBP": "pound sterling|pounds sterling, stg|stg, sterling|sterling, pound stg|pounds stg, british pound, quid|quid",
    "EUR": "euro",
    "JPY": "yen|yen, japanese yen|japanese yen",
    "CNY": "yuan|yuan, renminbi|renminbi",
    "DEM": "mark, d-mark, deutsche mark, deutschmark, west german mark, german mark, deutschemark",
    "FRF": "franc, french franc, ffr|ffr",
    "CHF": "swiss franc, sfr|sfr",
    "BEF": "belgian franc, bfr|bfr",
    "LUF": "luxembourg franc",
    "NLG": "guilder, dutch guilder, florin",
    "ITL": "lira|lire, italian lira|italian lire, lira|liras",
    "ESP": "peseta, spanish peseta",
    "PTE": "escudo",
    "SEK": "swedish crown, crown, swedish krona|swedish kronor, krona|kronor",
    "NOK": "norwegian crown, norwegian krone|norwegian kroner",
    "DKK": "danish crown, danish krone|danish kroner, krone|kroner",
    "FIM": "markka|markka, finnish mark, finnmark",
    "ATS": "schilling, austrian schilling",
    "GRD": "drachma",
    "IEP": "irish pound, punt",
    "INR": "rupee, indian rupee",
    "PKR": "pakistani rupee, pakistan rupee",
    "LKR": "sri lankan rupee, sri lanka rupee",
    "IDR": "rupiah|rupiah, indonesian rupiah|indonesian rupiah",
    "MYR": "ringgit|ringgit, malaysian dollar, malaysian dlr, malaysian ringgit|malaysian ringgit",
    "THB": "baht|baht",
    "PHP": "philippine peso",
    "KRW": "won|won, south korean won|south korean won, korean won|korean won",
    "SAR": "riyal, saudi riyal",
    "KWD": "kuwaiti dinar, dinar",
    "AED": "dirham, uae dirham",
    "ZAR": "rand|rand, south african rand|south african rand",
    "BRC": "cruzado",
    "BRL": "reais|reais, brazilian real|brazilian reais",
    "MXN": "peso, mexican peso",
    "ARA": "austral|australes, argentine austral|argentine australes",
    "VEB": "bolivar, venezuelan bolivar",
    "COP": "colombian peso",
    "CLP": "chilean peso",
    "PES": "soles|soles",
    "TRY": "turkish lira, turkish lira|turkish lire",
    "ILS": "shekel",
    "EGP": "egyptian pound",
    "RUB": "rouble, ruble",
    "PLN": "zloty",
    "HUF": "forint",
    "NGN": "naira|naira",
    "XDR": "sdr|sdrs, special drawing right",
    "XEU": "ecu|ecus, european currency unit",
    "BTC": "bitcoin",
}
_MONEY_PREFIXES = {
    "USD_cent": "¢",
    "USD": "$ US$ U.S.$",
    "CAD": "C$ CA$ Can$ Cdn$ CDN$",
    "AUD": "A$ AU$ Aus$",
    "NZD": "NZ$",
    "HKD": "HK$",
    "SGD": "S$ SG$",
    "TWD": "NT$ TW$",
    "BRL": "R$",
    "MXN": "MX$",
    "GBP": "£ ₤",
    "EUR": "€",
    "JPY": "¥ JP¥",
    "CNY": "CN¥ RMB",
    "INR": "₹ Rs. Rs Re.",
    "KRW": "₩",
    "ILS": "₪",
    "RUB": "₽",
    "TRY": "₺",
    "UAH": "₴",
    "NGN": "₦",
    "PHP": "₱",
    "VND": "₫",
    "THB": "฿",
    "BTC": "₿",
    "DEM": "DM",
    "CHF": "SFr SFr. Fr. Sfr",
    "FRF": "FFr",
    "NLG": "Dfl",
    "MYR": "RM",
}
_MINOR_COINS = {
    "USD_cent": ("USD", "cent, ct, cnt, u.s. cent, u.s. ct, us cent, us ct", "¢"),
    "CAD_cent": ("CAD", "canadian cent, canadian ct", ""),
    "AUD_cent": ("AUD", "australian cent, australian ct", ""),
    "EUR_cent": ("EUR", "euro cent, eurocent", ""),
    "GBP_penny": ("GBP", "pence|pence, penny|pence, p|p", "p"),
    "DEM_pfennig": ("DEM", "pfennig|pfennigs", ""),
    "INR_paisa": ("INR", "paisa|paise", ""),
}
CURRENCIES = (frozenset(babel_numbers.list_currencies("en")) | {"BTC"}) - {"XTS", "XXX"}
PREFIXES: dict[str, str] = {}
"""Currency signs and codes before a number."""
PREFIX_FORMS: dict[str, list[str]] = {}
_NOT_CODES = {"ALL", "TOP", "MOP", "TRY", "LAK", "ETB", "BAM", "CUP", "PAB", "SOS", "STD", "XXX", "XTS", "PEN", "GEL"}

for _code, _prefixes in _MONEY_PREFIXES.items():
    for _form in _prefixes.split():
        PREFIXES.setdefault(_form, _code)
        PREFIX_FORMS.setdefault(_code, []).append(_form)
for _code, _words in _MONEY_WORDS.items():
    _add(_code, "money", "", _words)
for _code in sorted(CURRENCIES):
    CLASSES[_code] = "money"
    FORMS.setdefault(_code, [])
    if _code not in _NOT_CODES:  # those are also English words or abbreviations
        SYMBOLS.setdefault(_code, _code)
        PREFIXES.setdefault(_code, _code)
        FORMS[_code].append(_code)
        PREFIX_FORMS.setdefault(_code, []).append(_code)
    if _code[0] != "X" and _code in babel_numbers.list_currencies("en"):
        for _count in (1, 2):
            _form = babel_numbers.get_currency_name(_code, _count, "en").lower()
            readable = _form.isascii() and _form.replace(" ", "").isalpha() and _form.count(" ") < 4
            if readable and WORDS.setdefault(_form, _code) == _code and _count == 2 and _form not in FORMS[_code]:
                FORMS[_code].append(_form)
for _sign, _code in (("$", "USD"), ("€", "EUR"), ("£", "GBP"), ("¥", "JPY"), ("₹", "INR")):
    SYMBOLS[_sign] = _code
    FORMS[_code].append(_sign)
for _name, (_code, _words, _symbols) in _MINOR_COINS.items():
    _add(_name, "money", _symbols, _words)
    OWN[_name] = (0.01, _code)

MULTIWORD: dict[str, int] = {}
"""First word of a form of several words: the longest such form, in words."""
for _form in WORDS:
    _pieces = _form.split(" ")
    if len(_pieces) > 1:
        MULTIWORD[_pieces[0]] = max(MULTIWORD.get(_pieces[0], 0), len(_pieces))
