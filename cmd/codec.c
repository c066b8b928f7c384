#include "cmd/codec.h"

#include "cmd/cmd.h"

enum dl_codec cmd_codec(const char *option, const char *s)
{
	enum dl_codec codec;

	if (dl_codec_parse(s, &codec))
		cmd_usage("%s %s: not f32, f16, bf16, int8, int4, fp4, int2 "
			  "or int1",
			option, s);
	return codec;
}
